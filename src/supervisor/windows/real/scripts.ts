/**
 * All PowerShell scripts: constant texts without interpolation. The input arrives as a JSON document on standard input
 * in `$in`; the result is one JSON document on standard output.
 */

const PRELUDE = `$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
[Console]::InputEncoding = New-Object System.Text.UTF8Encoding($false)
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding($false)
$in = ConvertFrom-Json ([Console]::In.ReadToEnd())
`

const HNS = `Add-Type -TypeDefinition @'
using System.Runtime.InteropServices;
public static class Hns {
  [DllImport("vmcompute.dll")]
  public static extern void HNSCall(
    [MarshalAs(UnmanagedType.LPWStr)] string method, [MarshalAs(UnmanagedType.LPWStr)] string path,
    [MarshalAs(UnmanagedType.LPWStr)] string request, [MarshalAs(UnmanagedType.LPWStr)] out string response);
}
'@
`

const HCN = `Add-Type -TypeDefinition @'
using System;
using System.Runtime.InteropServices;
public static class Hcn {
  const string Query = "{\\"SchemaVersion\\":{\\"Major\\":2,\\"Minor\\":0}}";
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnEnumerateNetworks(string query, [MarshalAs(UnmanagedType.LPWStr)] out string networks, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnOpenNetwork(ref Guid id, out IntPtr network, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnQueryNetworkProperties(IntPtr network, string query, [MarshalAs(UnmanagedType.LPWStr)] out string properties, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnCreateNetwork(ref Guid id, string settings, out IntPtr network, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnModifyNetwork(IntPtr network, string settings, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll", CharSet = CharSet.Unicode)]
  static extern int HcnDeleteNetwork(ref Guid id, [MarshalAs(UnmanagedType.LPWStr)] out string error);
  [DllImport("computenetwork.dll")]
  static extern int HcnCloseNetwork(IntPtr network);
  static void Check(int code, string error) { if (code < 0) throw new Exception(code.ToString("x8") + " " + error); }
  static IntPtr Open(string id) {
    IntPtr network; string error; Guid guid = new Guid(id);
    Check(HcnOpenNetwork(ref guid, out network, out error), error);
    return network;
  }
  public static string Enumerate() {
    string networks, error;
    Check(HcnEnumerateNetworks(Query, out networks, out error), error);
    return networks;
  }
  public static string Read(string id) {
    IntPtr network = Open(id); string properties, error;
    try { Check(HcnQueryNetworkProperties(network, Query, out properties, out error), error); return properties; }
    finally { HcnCloseNetwork(network); }
  }
  public static void Create(string settings) {
    IntPtr network; string error; Guid guid = Guid.NewGuid();
    Check(HcnCreateNetwork(ref guid, settings, out network, out error), error);
    HcnCloseNetwork(network);
  }
  public static void Modify(string id, string settings) {
    IntPtr network = Open(id); string error;
    try { Check(HcnModifyNetwork(network, settings, out error), error); }
    finally { HcnCloseNetwork(network); }
  }
  public static void Remove(string id) {
    string error; Guid guid = new Guid(id);
    Check(HcnDeleteNetwork(ref guid, out error), error);
  }
}
'@
`

export type ScriptName =
  | 'elevated'
  | 'adapters'
  | 'add-route'
  | 'hns'
  | 'hcn'
  | 'variable-get'
  | 'variable-set'
  | 'file-signer'
  | 'process-find'
  | 'process-kill'
  | 'service-state'
  | 'service-install'
  | 'service-start'
  | 'service-stop'
  | 'service-remove'
  | 'firewall-find'
  | 'firewall-allow'
  | 'firewall-remove'
  | 'log-tail'

/** A service wrapper that runs one program, logs its output and ends with it. Windows restarts it as configured. */
export const WRAPPER_SOURCE = `using System;
using System.Diagnostics;
using System.IO;
using System.ServiceProcess;
public sealed class KeptProgram : ServiceBase {
  private readonly Process child = new Process();
  private StreamWriter log;
  private volatile bool stopping;
  public static void Main() { ServiceBase.Run(new KeptProgram()); }
  protected override void OnStart(string[] ignored) {
    string[] lines = File.ReadAllLines(Process.GetCurrentProcess().MainModule.FileName + ".txt");
    Directory.CreateDirectory(Path.GetDirectoryName(lines[1]));
    log = new StreamWriter(new FileStream(lines[1], FileMode.Append, FileAccess.Write, FileShare.ReadWrite));
    log.AutoFlush = true;
    ProcessStartInfo start = new ProcessStartInfo(lines[0], lines[2]);
    start.UseShellExecute = false;
    start.CreateNoWindow = true;
    start.RedirectStandardOutput = true;
    start.RedirectStandardError = true;
    for (int i = 3; i < lines.Length; i++) {
      int at = lines[i].IndexOf('=');
      if (at > 0) start.EnvironmentVariables[lines[i].Substring(0, at)] = lines[i].Substring(at + 1);
    }
    child.StartInfo = start;
    child.EnableRaisingEvents = true;
    child.OutputDataReceived += Write;
    child.ErrorDataReceived += Write;
    child.Exited += Ended;
    child.Start();
    child.BeginOutputReadLine();
    child.BeginErrorReadLine();
  }
  private void Write(object sender, DataReceivedEventArgs line) {
    if (line.Data != null) lock (log) log.WriteLine(line.Data);
  }
  private void Ended(object sender, EventArgs e) { if (!stopping) Environment.Exit(1); }
  protected override void OnStop() {
    stopping = true;
    if (!child.HasExited) child.Kill();
    child.WaitForExit();
  }
}
`

const BODIES: Readonly<Record<ScriptName, string>> = {
  elevated: `$who = New-Object Security.Principal.WindowsPrincipal([Security.Principal.WindowsIdentity]::GetCurrent())
ConvertTo-Json $who.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
`,
  adapters: `$routes = @(Get-NetRoute -AddressFamily IPv4 -DestinationPrefix '0.0.0.0/0' -ErrorAction SilentlyContinue)
$found = @(Get-NetIPAddress -AddressFamily IPv4 | ForEach-Object {
  $address = $_
  $route = $routes | Where-Object { $_.ifIndex -eq $address.InterfaceIndex } | Select-Object -First 1
  $gateway = $null
  if ($route) { $gateway = $route.NextHop }
  $link = Get-NetIPInterface -AddressFamily IPv4 -InterfaceIndex $address.InterfaceIndex
  @{ name = $address.InterfaceAlias; index = $address.InterfaceIndex; address = $address.IPAddress; prefixLength = $address.PrefixLength; gateway = $gateway; mtu = $link.NlMtu }
})
ConvertTo-Json -Depth 3 -InputObject $found
`,
  'add-route': `New-NetRoute -DestinationPrefix $in.prefix -InterfaceIndex $in.interfaceIndex -NextHop $in.gateway -RouteMetric $in.metric -PolicyStore ActiveStore | Out-Null
`,
  hns: `${HNS}$response = ''
[Hns]::HNSCall($in.method, $in.path, $in.body, [ref]$response)
$response
`,
  hcn: `${HCN}switch ($in.action) {
  'list' {
    $ids = ConvertFrom-Json ([Hcn]::Enumerate())
    $all = @($ids | ForEach-Object { [Hcn]::Read($_) })
    '[' + ($all -join ',') + ']'
  }
  'create' { [Hcn]::Create($in.settings) }
  'modify' { [Hcn]::Modify($in.id, $in.settings) }
  'remove' { [Hcn]::Remove($in.id) }
}
`,
  'variable-get': `ConvertTo-Json ([Environment]::GetEnvironmentVariable($in.name, 'Machine'))
`,
  'variable-set': `[Environment]::SetEnvironmentVariable($in.name, $in.value, 'Machine')
`,
  'file-signer': `$signature = Get-AuthenticodeSignature -LiteralPath $in.path
$signer = $null
if ($signature.Status.ToString() -eq 'Valid') { $signer = $signature.SignerCertificate.Subject }
ConvertTo-Json $signer
`,
  'process-find': `$found = @(Get-Process -Name $in.name -ErrorAction SilentlyContinue | ForEach-Object { $_.Id })
ConvertTo-Json -InputObject $found
`,
  'process-kill': `$found = @(Get-Process -Name $in.name -ErrorAction SilentlyContinue)
$found | Stop-Process -Force -ErrorAction SilentlyContinue
$found | Wait-Process -Timeout 30 -ErrorAction SilentlyContinue
`,
  'service-state': `$service = Get-Service -Name $in.name -ErrorAction SilentlyContinue
$state = $null
if ($service) { $state = $service.Status.ToString() }
ConvertTo-Json $state
`,
  'service-install': `$old = Get-Service -Name $in.name -ErrorAction SilentlyContinue
if ($old) {
  Stop-Service -Name $in.name -Force
  & sc.exe delete $in.name | Out-Null
}
Remove-Item -LiteralPath $in.wrapper -Force -ErrorAction SilentlyContinue
Add-Type -TypeDefinition $in.source -OutputAssembly $in.wrapper -OutputType ConsoleApplication -ReferencedAssemblies 'System', 'System.ServiceProcess'
[IO.File]::WriteAllLines($in.wrapper + '.txt', [string[]]$in.lines)
New-Service -Name $in.name -BinaryPathName ('"' + $in.wrapper + '"') -Description $in.description -StartupType Automatic | Out-Null
& sc.exe failure $in.name 'reset=' '86400' 'actions=' 'restart/5000/restart/5000/restart/60000' | Out-Null
`,
  'service-start': `Start-Service -Name $in.name
`,
  'service-stop': `Stop-Service -Name $in.name -Force
`,
  'service-remove': `$service = Get-Service -Name $in.name -ErrorAction SilentlyContinue
if ($service) { & sc.exe delete $in.name | Out-Null }
`,
  'firewall-find': `$rule = Get-NetFirewallRule -DisplayName $in.name -ErrorAction SilentlyContinue
ConvertTo-Json ($null -ne $rule)
`,
  'firewall-allow': `New-NetFirewallRule -DisplayName $in.name -Direction Inbound -Action Allow -Protocol $in.protocol -LocalPort $in.port | Out-Null
`,
  'firewall-remove': `Remove-NetFirewallRule -DisplayName $in.name -ErrorAction SilentlyContinue
`,
  'log-tail': `Get-Content -LiteralPath $in.path -Tail $in.lines -Wait:$in.follow
`,
}

export const SCRIPT_NAMES: readonly ScriptName[] = Object.keys(BODIES) as ScriptName[]

export function scriptText(name: ScriptName): string {
  return PRELUDE + BODIES[name]
}
