# Shows what kubelet, flanneld or kube-proxy said: "hyperkube node logs".
param(
  [ValidateSet('kubelet', 'flanneld', 'kube-proxy')][string]$Name = 'kubelet',
  [int]$Lines = 200,
  [string]$BaseDir = 'c:\k',
  [switch]$Follow
)
$arguments = @('node', 'logs', $Name, '--lines', $Lines, '--base-dir', $BaseDir)
if ($Follow) { $arguments += '--follow' }
& (Join-Path $PSScriptRoot 'hyperkube.cmd') @arguments
exit $LASTEXITCODE
