module gobench

go 1.21
