# Makes this machine a plain one again: "hyperkube node reset".
param([string]$BaseDir = 'c:\k')
& (Join-Path $PSScriptRoot 'hyperkube.cmd') 'node' 'reset' '--base-dir' $BaseDir
exit $LASTEXITCODE
