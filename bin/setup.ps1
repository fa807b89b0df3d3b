# Makes this machine a worker of a cluster: "hyperkube node setup" with the names that such scripts have always had.
param(
  [string]$BaseDir = 'c:\k',
  [string]$ClusterCIDR = '10.244.0.0/16',
  [string]$ServiceCIDR = '10.10.0.0/16',
  [string]$InterfaceName = 'Ethernet0',
  [string]$Release = '1.36.4',
  [string]$NanosServerImageTag = '10.0.17763.802',
  [string]$ServerCoreImageTag = 'ltsc2019',
  [switch]$Reset
)
$command = 'setup'
if ($Reset) { $command = 'reset' }
$arguments = @(
  'node', $command, '--base-dir', $BaseDir, '--cluster-cidr', $ClusterCIDR, '--service-cidr', $ServiceCIDR,
  '--interface-name', $InterfaceName, '--release', $Release,
  '--nano-server-image-tag', $NanosServerImageTag, '--server-core-image-tag', $ServerCoreImageTag
)
& (Join-Path $PSScriptRoot 'hyperkube.cmd') @arguments
exit $LASTEXITCODE
