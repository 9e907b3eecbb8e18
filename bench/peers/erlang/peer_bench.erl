%% SPDX-License-Identifier: MIT OR Apache-2.0
%%
%% The workloads on Erlang: plain processes, ! and receive. Started by run.sh,
%% which gives the virtual machine as many schedulers as there are threads.
-module(peer_bench).
-compile([inline]).
-export([main/1, create_once/3, skynet_node/3]).

-define(RING_LEN, 503).
-define(PRODUCERS, 8).
-define(FORKJOIN_LEN, 60).
-define(BIG_LEN, 200).
-define(FANOUT, 10).

main([Workload, Threads]) ->
    supervise(Workload, Threads, default_ops(Workload));
main([Workload, Threads, "--ops", Ops]) ->
    supervise(Workload, Threads, list_to_integer(Ops));
main(_) ->
    io:format(standard_error, "usage: run.sh WORKLOAD THREADS [--ops N]~n", []),
    halt(2).

%% The measured code runs in a process of its own: the first one is special.
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
    Start = erlang:monotonic_time(nanosecond),
    Done = run(Workload, Ops),
    Seconds = (erlang:monotonic_time(nanosecond) - Start) / 1.0e9,
    io:format("{\"runtime\":\"erlang\",\"workload\":\"~s\",\"threads\":~s,\"ops\":~w,"
              "\"seconds\":~.6f,\"ops_per_s\":~w}~n",
              [Workload, Threads, Done, Seconds, round(Done / Seconds)]).

default_ops("pingpong") -> 10000000;
default_ops("ring") -> 10000000;
default_ops("count") -> 10000000;
default_ops("fanin") -> 8000000;
default_ops("forkjoin") -> 6000000;
default_ops("create") -> 1000000;
default_ops("skynet") -> 1111111;
default_ops("big") -> 8000000;
default_ops(_) -> 1.

%% Every clause returns the number of messages or actors it really handled.
run("pingpong", Ops) ->
    Main = self(),
    Rounds = share(Ops, 2),
    Pong = spawn(fun pong/0),
    spawn(fun() -> ping(Pong, Rounds, Main) end),
    expect(ping_done),
    2 * Rounds;
run("ring", Ops) ->
    Main = self(),
    First = spawn(fun() -> receive {next, Next} -> ring_member(Next, 0, Main) end end),
    Second = lists:foldl(fun(Index, Next) -> spawn(fun() -> ring_member(Next, Index, Main) end) end,
                         First, lists:seq(?RING_LEN - 1, 1, -1)),
    First ! {next, Second},
    First ! Ops,
    expect({ring_done, Ops rem ?RING_LEN}),
    Ops;
run("count", Ops) ->
    producers(1, Ops);
run("fanin", Ops) ->
    producers(?PRODUCERS, share(Ops, ?PRODUCERS));
run("forkjoin", Ops) ->
    Main = self(),
    Rounds = share(Ops, ?FORKJOIN_LEN),
    Members = [spawn(fun() -> forkjoin_member(Rounds, Main) end)
               || _ <- lists:seq(1, ?FORKJOIN_LEN)],
    spawn(fun() -> forkjoin_driver(Members, Rounds) end),
    expect_times(forkjoin_done, ?FORKJOIN_LEN),
    ?FORKJOIN_LEN * Rounds;
run("create", Ops) ->
    Main = self(),
    Counter = atomics:new(1, []),
    spawn(fun() -> creator(Ops, Counter, Ops, Main) end),
    expect(create_done),
    Ops;
run("skynet", Ops) ->
    Main = self(),
    Leaves = skynet_leaves(?FANOUT, Ops),
    spawn(?MODULE, skynet_node, [Main, 0, Leaves]),
    expect(Leaves * (Leaves - 1) div 2),
    skynet_actors(Leaves);
run("big", Ops) ->
    Main = self(),
    Rounds = share(Ops, 2 * ?BIG_LEN),
    Members = [spawn(fun() -> big_member(Rounds, Main, Index) end)
               || Index <- lists:seq(1, ?BIG_LEN)],
    All = list_to_tuple(Members),
    [Member ! {go, All} || Member <- Members],
    expect_times(big_done, ?BIG_LEN),
    2 * ?BIG_LEN * Rounds;
run(_, _) ->
    exit(unknown_workload).

share(Ops, Parts) -> max(Ops div Parts, 1).

%% The next message must be Term.
expect(Term) ->
    receive
        Term -> ok;
        Other -> exit({wrong_result, Other})
    end.

expect_times(_, 0) -> ok;
expect_times(Term, N) -> expect(Term), expect_times(Term, N - 1).

%% pingpong
pong() ->
    receive {From, Value} -> From ! {self(), Value}, pong() end.

ping(_, 0, Main) ->
    Main ! ping_done;
ping(Pong, N, Main) ->
    Pong ! {self(), N},
    receive {Pong, N} -> ping(Pong, N - 1, Main) end.

%% ring
ring_member(Next, Index, Main) ->
    receive
        0 -> Main ! {ring_done, Index};
        Hops -> Next ! Hops - 1, ring_member(Next, Index, Main)
    end.

%% count and fanin
producers(Count, Rounds) ->
    Main = self(),
    Total = Count * Rounds,
    Sink = spawn(fun() -> counter(0, Total, Main) end),
    [spawn(fun() -> producer(Sink, Rounds) end) || _ <- lists:seq(1, Count)],
    expect({counted, Total}),
    Total.

counter(Total, Total, Main) -> Main ! {counted, Total};
counter(Count, Total, Main) -> receive {inc, _} -> counter(Count + 1, Total, Main) end.

producer(_, 0) -> ok;
producer(Sink, N) -> Sink ! {inc, N}, producer(Sink, N - 1).

%% forkjoin
forkjoin_member(0, Main) -> Main ! forkjoin_done;
forkjoin_member(N, Main) -> receive inc -> forkjoin_member(N - 1, Main) end.

forkjoin_driver(_, 0) -> ok;
forkjoin_driver(Members, N) -> forkjoin_round(Members), forkjoin_driver(Members, N - 1).

forkjoin_round([]) -> ok;
forkjoin_round([Member | Rest]) -> Member ! inc, forkjoin_round(Rest).

%% create
creator(0, _, _, _) ->
    ok;
creator(N, Counter, Total, Main) ->
    Pid = spawn(?MODULE, create_once, [Counter, Total, Main]),
    Pid ! go,
    creator(N - 1, Counter, Total, Main).

create_once(Counter, Total, Main) ->
    receive go ->
        case atomics:add_get(Counter, 1, 1) of
            Total -> Main ! create_done;
            _ -> ok
        end
    end.

%% skynet
skynet_actors(0) -> 0;
skynet_actors(Leaves) -> Leaves + skynet_actors(Leaves div ?FANOUT).

%% The largest tree that has no more than Ops actors, but at least one level.
skynet_leaves(Leaves, Ops) ->
    case skynet_actors(Leaves * ?FANOUT) =< Ops of
        true -> skynet_leaves(Leaves * ?FANOUT, Ops);
        false -> Leaves
    end.

skynet_node(Parent, First, 1) ->
    Parent ! First;
skynet_node(Parent, First, Size) ->
    skynet_children(self(), First, Size div ?FANOUT, ?FANOUT),
    Parent ! skynet_sum(?FANOUT, 0).

skynet_children(_, _, _, 0) ->
    ok;
skynet_children(Self, First, Size, N) ->
    spawn(?MODULE, skynet_node, [Self, First, Size]),
    skynet_children(Self, First + Size, Size, N - 1).

skynet_sum(0, Sum) -> Sum;
skynet_sum(N, Sum) -> receive Value -> skynet_sum(N - 1, Sum + Value) end.

%% big. The random numbers stay below 2^60, so that they need no big integers.
big_member(Rounds, Main, Index) ->
    receive {go, All} -> big_ping(All, Rounds, Main, Index * 7919) end.

big_ping(_, 0, Main, _) ->
    Main ! big_done,
    big_answer();
big_ping(All, N, Main, Random0) ->
    Random = (Random0 * 1103515245 + 12345) band 16#7fffffff,
    element((Random bsr 8) rem ?BIG_LEN + 1, All) ! {ping, self()},
    big_wait(All, N, Main, Random).

big_wait(All, N, Main, Random) ->
    receive
        {ping, From} -> From ! pong, big_wait(All, N, Main, Random);
        pong -> big_ping(All, N - 1, Main, Random)
    end.

%% A member that is done goes on answering the others.
big_answer() ->
    receive {ping, From} -> From ! pong, big_answer() end.
