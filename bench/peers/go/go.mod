module peer-go

go 1.21

require gobench v0.0.0

replace gobench => ../gobench
