/**
 * Tests `hyperkube build` on two virtual machines with systemd. The power of the control plane is cut during `up`, and
 * a second `up` must complete the cluster. Both machines are rebooted and must recover. `remove` must leave neither
 * units nor files. Needs etcd and what virtual-machine.ts needs. The emulated machines are slow: takes half an hour.
 *
 *     node test/upstream/build-machines.ts [--keep]
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs, promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { installed } from '../bench/server-under-test.ts'
import { mustBe, Shown, untilSo } from './shown.ts'
import { startMachine, type VirtualMachine, whyNoMachine } from './virtual-machine.ts'

const run = promisify(execFile)
const { values: options } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })
const shown = new Shown()
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const BRIDGE = 'hkvm'
const NETWORK = '10.198.0'
const WAIT_SECONDS = 600
/** After this line of `up` the power goes: etcd runs, the control plane is being made. */
const CUT_AFTER = 'start kube-apiserver'
/** Prints the links and tables of flannel, kube-proxy and pods; the table that iptables creates stays. */
const IN_KERNEL =
  "ip -br link show type vxlan; ip -br link show type bridge; nft list tables | grep -v ' filter$' || true"
const UNITS = "systemctl list-units --plain --no-legend 'hyperkube-*' | awk '{print $1, $3}'"

const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'quiet' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'quiet' } },
    template: {
      metadata: { labels: { app: 'quiet' } },
      spec: { containers: [{ name: 'quiet', image: 'hyperkube.local/pause:1', imagePullPolicy: 'Never' }] },
    },
  },
}

interface Site {
  readonly folder: string
  readonly program: string
  readonly machines: readonly VirtualMachine[]
  readonly hyperkube: (...args: string[]) => Promise<string>
  readonly kubectl: (...args: string[]) => Promise<string>
}

async function makeSite(closing: AsyncDisposableStack): Promise<Site> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-machines-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const program = await installed()
  const key = join(folder, 'id')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  await run('ip', ['link', 'add', BRIDGE, 'type', 'bridge'])
  closing.defer(async () => void (await run('ip', ['link', 'del', BRIDGE])))
  await run('ip', ['addr', 'add', `${NETWORK}.1/24`, 'dev', BRIDGE])
  await run('ip', ['link', 'set', BRIDGE, 'up'])
  const machines: VirtualMachine[] = []
  for (const at of [1, 2]) {
    const network = { bridge: BRIDGE, address: `${NETWORK}.${10 + at}/24`, gateway: `${NETWORK}.1` }
    const machine = await startMachine({ folder: join(folder, `m${at}`), name: `m${at}`, key, network })
    closing.use(machine)
    machines.push(machine)
  }
  await writeFile(join(folder, 'cluster.yml'), stringifyYaml(clusterFile(key)))
  await writeFile(join(folder, 'quiet.json'), JSON.stringify(DEPLOYMENT))
  const hyperkube = async (...args: string[]): Promise<string> => {
    say(`$ hyperkube ${args.join(' ')}`)
    const { stdout } = await run(program, args, { cwd: folder, maxBuffer: 1 << 26 })
    say(stdout.trimEnd())
    return stdout
  }
  const kubectl = (...args: string[]): Promise<string> =>
    hyperkube('kubectl', '--kubeconfig=kube_config_cluster.yml', ...args)
  return { folder, program, machines, hyperkube, kubectl }
}

function clusterFile(key: string): object {
  const nodes = [['controlplane', 'etcd'], ['worker']].map((role, at) => ({
    address: `${NETWORK}.${11 + at}`,
    user: 'root',
    hostname_override: `m${at + 1}`,
    role,
  }))
  const none = { provider: 'none' }
  // On an emulated machine the start of all controllers takes longer than a leader may be silent.
  const patient = {
    extra_args: {
      'leader-elect-lease-duration': '120s',
      'leader-elect-renew-deadline': '90s',
      'leader-elect-retry-period': '5s',
    },
  }
  return {
    ssh_key_path: key,
    nodes,
    services: { 'kube-controller': patient, scheduler: patient },
    network: { plugin: 'flannel' },
    ingress: none,
    monitoring: none,
    dns: none,
  }
}

/** Resolves to the exit code of `up`, whose machine has lost its power on the way. */
async function upWithCut({ folder, program, machines }: Site): Promise<{ code: number; wasCut: boolean }> {
  const child = spawn(program, ['build', 'up'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stderr.on('data', (words: Buffer) => say(words.toString().trimEnd()))
  let wasCut = false
  let cutting: Promise<void> | undefined
  createInterface({ input: child.stdout }).on('line', (line) => {
    say(line)
    if (cutting !== undefined || !line.includes(CUT_AFTER)) return
    say('--- the power of m1 is cut')
    wasCut = true
    cutting = machines[0]?.cut()
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  await cutting
  return { code: code ?? 1, wasCut }
}

async function untilPodsRun({ kubectl }: Site): Promise<void> {
  await untilSo(
    () => kubectl('get', 'deployment', 'quiet', '-o', 'jsonpath={.status.readyReplicas}').catch(() => ''),
    (ready) => ready === '2',
    WAIT_SECONDS,
  )
}

async function reboot(machine: VirtualMachine): Promise<void> {
  const bootId = async (): Promise<string> =>
    (await machine.shell('cat /proc/sys/kernel/random/boot_id').catch(() => '')).trim()
  const before = await bootId()
  await machine.shell('systemctl reboot').catch(() => undefined)
  await untilSo(bootId, (id) => id !== '' && id !== before, WAIT_SECONDS)
}

async function main(): Promise<void> {
  const reason = whyNoMachine()
  if (reason !== undefined) return void shown.step('virtual machines', () => `not run: ${reason}`)
  await using closing = new AsyncDisposableStack()
  const site = await makeSite(closing)
  const [first, second] = site.machines as [VirtualMachine, VirtualMachine]
  await shown.step('the power of the control plane goes in the middle of up, which fails', async () => {
    const { code, wasCut } = await upWithCut(site)
    mustBe(wasCut && code !== 0, `exit code ${code}, ${wasCut ? '' : 'not '}cut`)
    await first.start()
    return `exit code ${code}`
  })
  await shown.step('the second up finishes the work', async () => {
    await site.hyperkube('build', 'up')
    await site.kubectl('get', 'nodes', '-o', 'wide')
    return (await first.shell(UNITS)).trim().split('\n').join(', ')
  })
  await shown.step('pods run', async () => {
    await site.kubectl('apply', '-f', 'quiet.json')
    await untilPodsRun(site)
    return await site.kubectl('get', 'pods', '-o', 'jsonpath={.items[*].status.podIP}')
  })
  await shown.step('a third up has nothing to do', async () => {
    mustBe((await site.hyperkube('build', 'up')).includes('Nothing to do'), 'it has')
    return ''
  })
  await tryReboot(site, second, first)
  await tryRemoval(site)
}

async function tryReboot(site: Site, ...machines: readonly VirtualMachine[]): Promise<void> {
  await shown.step('both machines are rebooted and come back', async () => {
    const ids = await site.kubectl('get', 'pods', '-o', 'jsonpath={.items[*].metadata.uid}')
    for (const machine of machines) await reboot(machine)
    await sleep(realClock, 5000)
    const ready = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
    await untilSo(
      () => site.kubectl('get', 'nodes', '-o', ready).catch(() => ''),
      (said) => said === 'True True',
      WAIT_SECONDS,
    )
    await untilPodsRun(site)
    const after = await site.kubectl('get', 'pods', '-o', 'jsonpath={.items[*].metadata.uid}')
    mustBe(after === ids, `other pods: ${after}, before: ${ids}`)
    mustBe((await site.hyperkube('build', 'up')).includes('Nothing to do'), 'up has something to do')
    return 'the same pods run, and up has nothing to do'
  })
}

async function tryRemoval(site: Site): Promise<void> {
  await shown.step('remove leaves nothing', async () => {
    await site.hyperkube('build', 'remove', '--force')
    const left: string[] = []
    for (const machine of site.machines)
      left.push(
        await machine.shell(
          `${UNITS}; ls -d /opt/hyperkube /etc/kubernetes /var/lib/hyperkube 2>/dev/null || true; ${IN_KERNEL}`,
        ),
      )
    mustBe(left.join('').trim() === '', left.join('; '))
    return ''
  })
}

await shown.step('all of it', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
