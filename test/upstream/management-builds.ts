/**
 * Tests that `hyperkube server` builds a cluster on machines that are namespaces of this one, each with sshd, and works on
 * it: a machine joins and leaves, etcd is restored, certificates and keys are rotated, programs are upgraded. The server is
 * killed in the middle. At the end it removes the cluster. Needs root, sshd, etcd with etcdctl, containerd and CNI's plugins.
 *
 *     node test/upstream/management-builds.ts [--keep] [--life NAME,…]
 */
import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { filesOf, makeMachines, type Names, plugIn, unplug } from './build/machines.ts'
import { BuiltCluster, check, fileFor, say, type StageView } from './built-cluster.ts'
import { deployPods, leftOn, LIFE, type LifeName, type Site } from './management-builds/life.ts'
import { startManagementServer } from './management-server.ts'
import { HYPERKUBE } from './ours.ts'
import { Shown } from './shown.ts'

const run = promisify(execFile)
const { values: options } = parseArgs({
  options: {
    keep: { type: 'boolean', default: false },
    life: { type: 'string', default: Object.keys(LIFE).join(',') },
  },
})

const NAMES: Names = { prefix: 'hkm', host: 's', network: '10.198.0' }
const ROLES: readonly (readonly string[])[] = [
  ['etcd', 'controlplane'],
  ['controlplane', 'worker'],
  ['worker'],
  ['worker'],
]

async function main(): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-management-builds-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const { machines } = await makeMachines(folder, ROLES.length, closing, NAMES)
  const files = machines.map(async (machine) => [machine.name, await filesOf(machine)] as const)
  const before = new Map(await Promise.all(files))
  const host = `${NAMES.network}.1`
  const serverUrl = `https://${host}:18443`
  const server = await startManagementServer(join(folder, 'server'), { host, port: 18443, serverUrl })
  closing.use(server)
  const cluster = new BuiltCluster(server, folder)
  const site: Site = { cluster, machines, roles: ROLES, before, top: {}, isBuilt: false }
  const shown = new Shown()
  for (const [what, deed] of stepsOf(site)) {
    // Without a cluster the others would wait for long.
    if (shown.hasFailed && !site.isBuilt) break
    await shown.step(what, () => deed().then(() => ''))
  }
  // Also after a failure: containers would outlive their machines.
  await shown.step('removes the cluster and all its files', () => remove(site).then(() => ''))
  return shown.end()
}

/** Each step needs the cluster that the one before has left. */
function stepsOf(site: Site): readonly (readonly [what: string, deed: () => Promise<void>])[] {
  const lives = options.life.split(',').filter(Boolean)
  return [
    ['builds a cluster, and continues after kill -9 of the server', () => build(site)],
    ['adds a machine', () => addMachine(site)],
    ...lives.map((name) => {
      const life = LIFE[name as LifeName]
      return [life.what, () => life.live(site)] as const
    }),
    ['serves kubectl while a control plane has no network', () => loseAgent(site)],
    ['hands the files over to hyperkube build', () => handOver(site)],
  ]
}

async function build({ cluster, machines: all, roles }: Site): Promise<void> {
  const machines = all.slice(0, 3)
  const { server } = cluster
  await cluster.create('built', fileFor(machines, roles))
  const first = await cluster.until('the operation has a status', async () => (await cluster.newest()).status?.phase)
  check(first === 'Pending', `a new operation has a status before its machines answer: ${first}`)
  const refused = await cluster.reached('Apply', 'Failed')
  say(refused.status?.message ?? '')
  check((refused.status?.message ?? '').includes('sshPublicKey'), 'a machine without the key says what to do')
  const key = await cluster.until('there is a key', async () => (await cluster.view()).status?.build?.sshPublicKey)
  for (const { folder } of machines) await appendFile(join(folder, 'etc', 'authorized'), `${key}\n`)
  await server.request('POST', `${cluster.path}/operations/${refused.metadata.name}/retry`)
  const planned = await cluster.reached('Apply', 'Planned')
  check((planned.status?.plan?.steps.length ?? 0) > 20, 'the plan has steps')
  await cluster.approve(planned)
  await cluster.until('etcd starts', async () => (await cluster.newest()).status?.stages?.some(startsEtcd))
  say('kill -9 of the server')
  await server.kill()
  await server.start()
  await cluster.reached('Apply', 'Succeeded')
  const log = await server.text('GET', `${cluster.path}/operations/${planned.metadata.name}/log?follow=true`)
  check(log.includes('It continues.') && log.endsWith('Done.\n'), 'the killed operation continued and ended')
  check(!/PRIVATE KEY/.test(log), 'the log has no keys')
  await cluster.ready(3)
  check((await cluster.kubectl('get', 'nodes')).split('\n').length === 5, 'kubectl sees three nodes through the server')
}

function startsEtcd({ name, steps }: StageView): boolean {
  return name === 'etcd' && steps.some(({ state }) => state !== 'Waiting')
}

async function addMachine(site: Site): Promise<void> {
  const { cluster, machines, roles } = site
  const key = (await cluster.view()).status?.build?.sshPublicKey ?? ''
  await appendFile(join(machines[3]?.folder ?? '', 'etc', 'authorized'), `${key}\n`)
  await cluster.apply(fileFor(machines, roles))
  await cluster.ready(4)
  site.isBuilt = true
  check((await cluster.view()).status?.build?.hostKeys?.length === 4, 'the host keys of all machines are pinned')
  await deployPods(cluster)
}

/** The agent of the other control plane still connects the cluster. */
async function loseAgent({ cluster, machines: [, second] }: Site): Promise<void> {
  if (second === undefined) throw new Error('There is no second machine')
  const { status } = await cluster.view()
  const nodes = status?.nodes?.ready ?? 0
  say(`${second.name} loses its network; the agent was at ${status?.agent?.address}`)
  await unplug(second)
  await cluster.until('kubectl is answered', async () =>
    (await cluster.kubectl('get', 'namespaces', '--request-timeout=5s')).includes('kube-system'),
  )
  say('  ok: the cluster answers through the server')
  const isMissed = async (): Promise<boolean> => (await cluster.view()).status?.nodes?.ready === nodes - 1
  await cluster.until('the node is missed', isMissed)
  await plugIn(second)
  await cluster.ready(nodes)
}

/** The files of the owner are enough for `hyperkube build`. */
async function handOver({ cluster: { server, path, folder } }: Site): Promise<void> {
  for (const file of ['cluster.yml', 'cluster.rkestate', 'cluster.known_hosts', 'ssh_key', 'kube_config_cluster.yml'])
    await writeFile(join(folder, file), await server.text('POST', `${path}/files`, { file }), { mode: 0o600 })
  await appendFile(join(folder, 'cluster.yml'), 'ssh_key_path: ssh_key\n')
  const { stdout } = await run(HYPERKUBE, ['build', 'plan', '-o', 'json'], { cwd: folder })
  const { steps, faults } = JSON.parse(stdout) as { steps: { describe: string }[]; faults: string[] }
  const others = steps.filter(({ describe }) => !/cluster-agent|files|state|addon/.test(describe))
  say(`  hyperkube build would: ${steps.map(({ describe }) => describe).join('; ')}`)
  check(
    faults.length === 0 && others.length === 0,
    'hyperkube build goes on with the files, and removes the agent only',
  )
}

async function remove(site: Site): Promise<void> {
  const { cluster, machines } = site
  const { server, path } = cluster
  await server.request('DELETE', path)
  await cluster.until('the cluster is gone', async () => (await server.statusOf('GET', path)) === 404)
  check((await server.statusOf('GET', `${path}/operations`)) === 404, 'nothing is listed for a cluster that is gone')
  for (const machine of machines) {
    const left = await leftOn(machine, site)
    check(left.length === 0, `${machine.name} has no files of the cluster ${left.slice(0, 5).join(' ')}`)
  }
}

process.exitCode = await main()
