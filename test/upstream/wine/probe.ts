/**
 * Tests the Windows parts that Wine supports: files with drive letters, machine variables in the registry, services,
 * and a set-up until the first call of HNS. PowerShell is an empty stub in Wine, so reg.exe and sc.exe replace it.
 * Firewall changes are only recorded. Prints one line of JSON.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { PowerShell } from '#supervisor/windows/real/powershell.ts'
import { windowsHost } from '#supervisor/windows/real/windows-host.ts'
import { setupContext } from '#supervisor/windows/setup/context.ts'
import { setupPaths, SETUP_DEFAULTS } from '#supervisor/windows/setup/settings.ts'
import { setUp } from '#supervisor/windows/setup/setup.ts'

const run = promisify(execFile)
const ENVIRONMENT = 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Environment'
const said: string[] = []
const rules = new Set<string>()
/** Wine cannot run a service without a real service program, so a started service counts as running. */
const started = new Set(['containerd'])

interface Input {
  readonly name: string
  readonly value: string
  readonly wrapper: string
  readonly lines: readonly string[]
}

const isThere = (name: string): Promise<boolean> =>
  run('sc.exe', ['query', name]).then(
    ({ stdout }) => stdout.includes(name),
    () => false,
  )

async function registryValue(name: string): Promise<string | null> {
  const { stdout } = await run('reg.exe', ['query', ENVIRONMENT, '/v', name]).catch(() => ({ stdout: '' }))
  const line = stdout.split(/\r?\n/).find((each) => each.trim().toLowerCase().startsWith(name.toLowerCase()))
  return line === undefined
    ? null
    : line
        .trim()
        .split(/\s{2,}|\t/)
        .slice(2)
        .join(' ')
}

const SCRIPTS: Readonly<Record<string, (input: Input) => Promise<unknown>>> = {
  elevated: async () => true,
  adapters: async () => [
    { name: 'Ethernet0', index: 4, address: '10.1.2.3', prefixLength: 24, gateway: null, mtu: 1500 },
  ],
  'variable-get': ({ name }) => registryValue(name),
  'variable-set': ({ name, value }) =>
    run('reg.exe', ['add', ENVIRONMENT, '/v', name, '/t', 'REG_SZ', '/d', value, '/f']),
  'service-state': async ({ name }) => {
    if (name !== 'containerd' && !(await isThere(name))) return null
    return started.has(name) ? 'Running' : 'Stopped'
  },
  async 'service-install'({ name, wrapper, lines }) {
    writeFileSync(wrapper, 'stand-in')
    writeFileSync(`${wrapper}.txt`, lines.join('\r\n'))
    await run('sc.exe', ['create', name, 'binPath=', wrapper, 'start=', 'auto'])
  },
  'service-start': async ({ name }) => started.add(name),
  'service-stop': async ({ name }) => started.delete(name),
  'service-remove': ({ name }) => run('sc.exe', ['delete', name]),
  'firewall-find': async ({ name }) => rules.has(name),
  'firewall-allow': async ({ name }) => rules.add(name),
  'process-find': async () => [],
}

const shell: PowerShell = async (name, input) => {
  const script = SCRIPTS[name]
  if (script === undefined) throw new Error(`Wine has no ${name}`)
  const answer = await script(input as Input)
  return JSON.stringify(answer ?? null)
}

const http = createHttpClient({ clock: realClock })
const host = windowsHost({ clock: realClock, http, say: (text) => said.push(text), ended: () => undefined, shell })
const settings = { ...SETUP_DEFAULTS, release: '1.36.4', digests: { flanneld: '0'.repeat(64) } }
const places = setupPaths(settings)
const found: Record<string, unknown> = { platform: process.platform, machine: host.machineName }

const { files } = host
await files.write('C:\\probe\\deep\\folder\\one.txt', 'one')
await files.write('C:\\probe\\deep\\folder\\one.txt', 'two')
await files.move('C:\\probe\\deep\\folder\\one.txt', 'C:\\probe\\other.txt')
found['files'] = [
  await files.read('C:\\probe\\other.txt'),
  await files.exists('C:\\probe\\deep\\folder\\one.txt'),
  await files.read('C:\\probe\\none'),
]
await files.empty('C:\\probe')
await files.remove('C:\\probe')
found['folder gone'] = !existsSync('C:\\probe')
found['program output'] = (await host.processes.output('cmd.exe', ['/c', 'echo', 'a b'])).trim()

await host.environment.set('HYPERKUBE_PROBE', 'a b;c')
found['variable'] = await host.environment.ofMachine('HYPERKUBE_PROBE')

// Downloads count as present: Wine has neither curl.exe nor tar.exe, and no access lists.
await files.write(places.kubeconfig, 'kind: Config')
await files.write(places.accessMark, 'administrators and system')
await files.write(places.releaseMark, settings.release)
await files.write(places.cniMark, '0.8.2')
await files.write(places.flanneld, 'stand-in')
const nodes = new Set<string>()
const context = setupContext({
  host,
  settings,
  signal: new AbortController().signal,
  cluster: {
    dnsServiceIp: async () => '10.10.0.10',
    isNodeThere: async (name) => nodes.has(name) || (nodes.add(name), started.has('Kubelet')),
    deleteNode: async () => undefined,
    endpoint: async () => ({ server: 'https://127.0.0.1:6443', certificateAuthority: '' }),
    clientAuthority: async () => 'CA',
    joinToken: async () => 'abcdef.0123456789abcdef',
    componentToken: async () => 'token',
    revoke: async () => undefined,
  },
})
found['set-up ends with'] = await setUp(context).then(
  () => 'success',
  (error: Error) => error.message,
)
found['steps'] = said
found['path'] = await registryValue('Path')
found['services'] = await Promise.all(['FlannelD', 'Kubelet', 'Kubeproxy'].map(isThere))
found['flanneld wrapper'] = readFileSync(`${places.wrapper('FlannelD')}.txt`, 'utf8').split('\r\n').length
found['cni.conf'] = (JSON.parse((await files.read(places.cniConf)) ?? '{}') as { name?: string }).name
http.close()
process.stdout.write(`${JSON.stringify(found)}\n`)
