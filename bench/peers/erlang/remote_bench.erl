%% SPDX-License-Identifier: MIT OR Apache-2.0
%%
%% The remote workloads on Erlang's own distribution: processes of two nodes, ! and receive. Started
%% by remote.sh, once for each node; the second one serves until its standard input ends.
-module(remote_bench).
-export([main/1, serve/0]).

-define(PAYLOAD_BITS, (56 * 8)). % besides the number, which has 64
-define(WINDOW, 8192).
-define(ACK, 2048).
-define(SERVER, 'second@127.0.0.1').

main([Workload, Threads]) ->
    supervise(Workload, Threads, default_ops(Workload));
main([Workload, Threads, "--ops", Ops]) ->
    supervise(Workload, Threads, list_to_integer(Ops));
main(_) ->
    io:format(standard_error, "usage: remote.sh WORKLOAD THREADS [--ops N]~n", []),
    halt(2).

default_ops("remote-oneway") -> 200000;
default_ops(_) -> 10000.

supervise(Workload, Threads, Ops) ->
    {Pid, Ref} = spawn_monitor(fun() -> measure(Workload, Threads, max(Ops, 1)) end),
    receive
        {'DOWN', Ref, process, Pid, normal} ->
            halt(0, [{flush, true}]);
        {'DOWN', Ref, process, Pid, Reason} ->
            io:format(standard_error, "FAIL ~s: ~p~n", [Workload, Reason]),
            halt(1)
    end.

measure(Workload, Threads, Ops) ->
    {Server, Processes} = connect(100),
    Cpu = cpu_ns(Processes),
    Start = erlang:monotonic_time(nanosecond),
    Trips = run(Workload, Server, Ops),
    Seconds = (erlang:monotonic_time(nanosecond) - Start) / 1.0e9,
    Spent = cpu_ns(Processes) - Cpu,
    io:format("{\"runtime\":\"erlang\",\"workload\":\"~s\",\"threads\":~s,\"ops\":~w,"
              "\"seconds\":~.6f,\"ops_per_s\":~w,\"cpu_ns_per_op\":~.1f~s}~n",
              [Workload, Threads, Ops, Seconds, round(Ops / Seconds), Spent / Ops, tails(Trips)]).

tails([]) -> "";
tails(Trips) ->
    Sorted = list_to_tuple(lists:sort(Trips)),
    Count = tuple_size(Sorted),
    io_lib:format(",\"p50_us\":~.1f,\"p99_us\":~.1f",
                  [element(Count div 2 + 1, Sorted) / 1.0e3,
                   element(Count - Count div 100, Sorted) / 1.0e3]).

%% The other node may still be starting.
connect(0) ->
    exit(no_second_node);
connect(Tries) ->
    case net_adm:ping(?SERVER) of
        pong ->
            {server, ?SERVER} ! {hello, self()},
            receive
                {hello, Server, Process} -> {Server, [os:getpid(), Process]}
            after 1000 -> connect(Tries - 1)
            end;
        pang -> timer:sleep(100), connect(Tries - 1)
    end.

%% User and system time of the processes, from fields 14 and 15 of their statistics (100 ticks a
%% second); the second field, a name in parentheses, may hold blanks.
cpu_ns(Processes) ->
    lists:sum([begin
                   {ok, Text} = file:read_file("/proc/" ++ Process ++ "/stat"),
                   [_, Fields] = string:split(Text, ")", trailing),
                   Words = string:lexemes(Fields, " "),
                   (binary_to_integer(lists:nth(12, Words))
                    + binary_to_integer(lists:nth(13, Words))) * 10000000
               end || Process <- Processes]).

%% Gives the nanoseconds of every round trip, if there are any.
run("remote-oneway", Server, Ops) ->
    Server ! {count, self(), Ops},
    send(Server, 0, ?WINDOW, Ops),
    [];
run("remote-ask", Server, Ops) ->
    ask(Server, 0, Ops, []);
run(_, _, _) ->
    exit(unknown_workload).

send(Server, Sent, Limit, Ops) when Sent < Ops, Sent < Limit ->
    Server ! <<Sent:64, 0:?PAYLOAD_BITS>>,
    send(Server, Sent + 1, Limit, Ops);
send(Server, Sent, _, Ops) ->
    receive
        {ack, Ops} -> ok;
        {ack, Acknowledged} -> send(Server, Sent, Acknowledged + ?WINDOW, Ops);
        Other -> exit({wrong_result, Other})
    end.

ask(_, Ops, Ops, Trips) ->
    Trips;
ask(Server, Number, Ops, Trips) ->
    Payload = <<Number:64, 0:?PAYLOAD_BITS>>,
    Asked = erlang:monotonic_time(nanosecond),
    Ref = make_ref(),
    Server ! {ask, self(), Ref, Payload},
    receive {Ref, Payload} -> ok end,
    ask(Server, Number + 1, Ops, [erlang:monotonic_time(nanosecond) - Asked | Trips]).

%% The second node.
serve() ->
    register(server, spawn(fun listen/0)),
    io:get_line(""), % the end of the input is the end of the first node
    halt(0).

listen() ->
    receive
        {hello, From} ->
            From ! {hello, self(), os:getpid()},
            listen();
        {count, From, Ops} ->
            count(From, 0, ?ACK, Ops),
            listen();
        {ask, From, Ref, Payload} ->
            From ! {Ref, Payload},
            listen()
    end.

count(From, Ops, _, Ops) ->
    From ! {ack, Ops};
count(From, Next, Next, Ops) ->
    From ! {ack, Next},
    count(From, Next, Next + ?ACK, Ops);
count(From, Next, Report, Ops) ->
    receive
        <<Next:64, 0:?PAYLOAD_BITS>> -> count(From, Next + 1, Report, Ops);
        Other -> From ! {wrong, Other}
    end.
