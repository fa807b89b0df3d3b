/**
 * Tests `hyperkube build` on machines that are namespaces of this one, each with a network, host name, files and sshd.
 * It runs `up`, a Deployment and a second `up`. Then machines join, leave and die, flags change, etcd is lost,
 * certificates and keys are renewed. Finally it runs `remove`. Needs root, sshd, etcd, etcdctl, containerd and CNI's
 * plugins.
 *
 *     node test/upstream/build.ts [--workers 1] [--control-planes 1] [--life nodes,kill,upgrade,snapshot,certificates,encryption] [--keep]
 *     node test/upstream/build.ts --local
 *
 * `nodes` and `kill` need three control planes and three workers; `nodes` uses one machine more. `images`, `policies`
 * and `bucket` are further values of --life. `--local` builds a cluster of one machine that provisions itself.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock } from '#lib/clock.ts'

import { Bed } from './build/bed.ts'
import { LIFE, type LifeName } from './build/life.ts'
import { filesOf, makeMachines, type TestMachine, runIn } from './build/machines.ts'
import { HYPERKUBE } from './ours.ts'

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    'control-planes': { type: 'string', default: '1' },
    life: { type: 'string', default: '' },
    keep: { type: 'boolean', default: false },
    local: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-build-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const planes = Number(options['control-planes'])
  const count = planes + Number(options.workers)
  const life = options.life.split(',').filter((name): name is LifeName => name in LIFE)
  const { machines, key } = await makeMachines(folder, life.includes('nodes') ? count + 1 : count, closing)
  const bed = new Bed({ folder, machines, key, planes, count })
  await bed.write({})
  const before = new Map(
    await Promise.all(machines.map(async (machine) => [machine.name, await filesOf(machine)] as const)),
  )
  await bed.build('up')
  await bed.kubectl('get', 'nodes', '-o', 'wide')
  await bed.deploy()
  const again = await bed.build('up')
  if (!again.includes('Nothing to do')) throw new Error('A second run has something to do')
  await bed.build('status')
  const failures: string[] = []
  for (const name of life) {
    bed.say(`=== ${name} ${new Date(realClock.now()).toISOString()}`)
    // One that fails does not hide what becomes of the others.
    const live = async (): Promise<void> => {
      await LIFE[name](bed)
      await bed.isWell()
    }
    await live().catch(async (error: Error) => {
      bed.say(`FAILED ${name}: ${error.stack}`)
      failures.push(name)
      await tellNodes(bed).catch(() => undefined)
    })
  }
  await bed.build('remove', '--force')
  for (const machine of machines) {
    const known = new Set(before.get(machine.name))
    const left = (await filesOf(machine)).filter((path) => !known.has(path))
    // Snapshots of etcd are meant to outlive the cluster.
    const unwanted = left.filter((path) => !path.startsWith('/opt/rke/etcd-snapshots/'))
    bed.say(`${machine.name} has ${left.length} files more than before; not snapshots: ${unwanted.join(' ') || 'none'}`)
    const kernel = await inKernel(machine)
    bed.say(`${machine.name} has in its kernel: ${kernel || 'nothing'}`)
    if (unwanted.length > 0 || kernel !== '') failures.push(`remove on ${machine.name}`)
  }
  bed.say(failures.length === 0 ? 'all steps passed' : `failed: ${failures.join(' ')}`)
  process.exitCode = failures.length
}

/** Why a node is not what it was to be. */
async function tellNodes(bed: Bed): Promise<void> {
  const ready = '.status.conditions[?(@.type=="Ready")]'
  const fields = ['status', 'reason', 'message', 'lastTransitionTime'].map((field) => `${field}:${ready}.${field}`)
  await bed.kubectl('get', 'nodes', '-o', `custom-columns=name:.metadata.name,${fields.join(',')}`)
  await bed.kubectl('get', 'events', '--field-selector=involvedObject.kind=Node', '--sort-by=.lastTimestamp')
}

/** Links and tables of rules that a new machine has not. */
async function inKernel(machine: TestMachine): Promise<string> {
  const links = (await runIn(machine, 'ip', '-br', 'link')).split('\n').filter((line) => !/^(?:lo|eth0@|$)/.test(line))
  // iptables creates this table at its first call.
  const tables = (await runIn(machine, 'nft', 'list', 'tables'))
    .split('\n')
    .filter((line) => !/^(?:table ip6? filter|)$/.test(line))
  return [...links, ...tables].join('; ')
}

/** On the machine itself, without SSH and without machines in the file; with the network that it cannot do without. */
async function mainLocal(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-build-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const { machines } = await makeMachines(folder, 1, closing)
  const [machine] = machines as [TestMachine]
  const before = new Set(await filesOf(machine))
  const hyperkube = async (...args: string[]): Promise<string> => {
    process.stdout.write(`$ hyperkube ${args.join(' ')}\n`)
    const said = await runIn(machine, 'sh', '-c', 'cd /root && exec "$@"', 'sh', HYPERKUBE, ...args)
    process.stdout.write(said)
    return said
  }
  await hyperkube('build', 'up', '--local')
  await hyperkube('kubectl', '--kubeconfig=kube_config_cluster.yml', 'get', 'nodes,pods', '-A', '-o', 'wide')
  if (!(await hyperkube('build', 'up', '--local')).includes('Nothing to do'))
    throw new Error('A second run has something to do')
  await hyperkube('build', 'remove', '--local', '--force')
  const left = (await filesOf(machine)).filter((path) => !before.has(path))
  process.stdout.write(`left: ${left.join(' ')}; in the kernel: ${await inKernel(machine)}\n`)
}

await (options.local ? mainLocal() : main())
