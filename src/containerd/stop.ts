/**
 * Stops and removes a private containerd. It first asks containerd to stop its pods, so that CNI releases addresses
 * and rules, then removes the rest. A repeated call after a crash finds everything, because all names derive from the
 * data directory.
 */
import { execFile } from 'node:child_process'
import { access, readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { createRuntimeClient } from '#cri/client.ts'
import { SANDBOX_STATE } from '#cri/codes.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import { unmountBelow } from '#lib/files/mount-table.ts'
import type { Logger } from '#lib/log/log.ts'
import { deleteNftTable, listNftTables, type NftFamily } from '#lib/net/nft.ts'
import type { Random } from '#lib/random.ts'

import { processesIn, removeCgroups } from './cgroups.ts'
import { natRemovals } from './leftovers.ts'
import { type ContainerdPaths, containerdPaths } from './paths.ts'
import { containerdIn, endProcesses, processes, shimsIn } from './process-table.ts'
import { keepContainerd } from './process.ts'
import { findPrograms } from './programs.ts'
import { connect, waitUntilReady } from './start.ts'

export interface StopOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
  readonly programs?: string
  /** Command prefix that enters the network namespace of the pods: `nsenter --net=…`. */
  readonly within?: readonly string[]
}

const run = promisify(execFile)

/** Stops all pods and processes; images and ended containers stay. Returns true if any was running. */
export async function stopContainerd(options: StopOptions): Promise<boolean> {
  const { clock, log } = options
  const places = containerdPaths(options.dataDir)
  if (!(await isThere(places))) return false
  const isRunning = await runs(places)
  // Read first: a shim that is killed while it exits leaves its socket after its directory is gone.
  const sockets = await shimSockets(places)
  if (isRunning)
    await stopPods(options, places).catch((error: unknown) => log.error(error, 'Failed to stop pods gracefully'))
  await endProcesses(containerdIn(await processes(), places), clock, STOP_MS)
  // In this order, so that shims do not report and clean up killed containers.
  await endProcesses(shimsIn(await processes(), places), clock, 0)
  await endProcesses(await processesIn(places.cgroupParent), clock, 0)
  for (const socket of sockets) await rm(socket, { force: true })
  await unmountBelow([places.stateFolder, places.root])
  // Rules in a network namespace disappear with it.
  if (options.within === undefined) await removeRules(places)
  return isRunning
}

/** Stops it and removes all its data. Returns true if anything existed. Idempotent. */
export async function removeContainerd(options: StopOptions): Promise<boolean> {
  const places = containerdPaths(options.dataDir)
  if (!(await isThere(places))) return false
  await stopContainerd(options)
  await removeCgroups(places.cgroupParent)
  await run('ip', ['link', 'delete', places.network]).catch(() => undefined)
  await removeNetworkFiles(places)
  await rm(places.stateFolder, { recursive: true, force: true })
  await rmdir(dirname(places.stateFolder)).catch(() => undefined)
  await rm(places.folder, { recursive: true, force: true })
  return true
}

const STOP_MS = 15_000
/** Timeout per pod. Containers get no grace period; delete the pods first to give them one. */
const POD_MS = 30_000

async function isThere({ folder, stateFolder }: ContainerdPaths): Promise<boolean> {
  const found = await Promise.allSettled([access(folder), access(stateFolder)])
  return found.some(({ status }) => status === 'fulfilled')
}

async function runs(places: ContainerdPaths): Promise<boolean> {
  const all = await processes()
  return containerdIn(all, places).length > 0 || shimsIn(all, places).length > 0
}

/** Starts containerd for this if it does not run. */
async function stopPods(options: StopOptions, places: ContainerdPaths): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const programs = await findPrograms(options.env, options.programs)
  const kept = await keepContainerd({ ...options, places, programs }, closing)
  const client = connect(places.socket, options)
  closing.defer(() => client.close())
  const runtime = createRuntimeClient(client)
  await waitUntilReady(runtime, kept, options.clock)
  const { items } = await runtime.listPodSandbox({})
  const isUp = items.filter(({ state }) => state === SANDBOX_STATE.ready)
  // A sandbox that is not ready may still have an address, if its network setup failed.
  await stopAll(
    runtime,
    [...isUp, ...items.filter((one) => !isUp.includes(one))].map(({ id }) => id),
  )
}

async function stopAll(runtime: Runtime, ids: readonly string[]): Promise<void> {
  const queue = [...ids]
  const failures: unknown[] = []
  const work = async (): Promise<void> => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift())
      await runtime.stopPodSandbox({ podSandboxId: id }, { timeoutMs: POD_MS }).catch((error) => failures.push(error))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} of ${ids.length} pods did not stop`)
}

const AT_ONCE = 8

/** Sockets of shims, which are in a directory shared by all containerds. */
async function shimSockets({ stateFolder }: ContainerdPaths): Promise<string[]> {
  const tasks = join(stateFolder, 'state', 'io.containerd.runtime.v2.task', 'k8s.io')
  const found = (await readdir(tasks).catch(() => [])).flatMap((id) =>
    ['address', 'bootstrap.json'].map(async (file) => {
      const text = await readFile(join(tasks, id, file), 'utf8').catch(() => '')
      return /unix:\/\/(\/run\/containerd\/s\/[0-9a-f]{64})/.exec(text)?.[1] ?? []
    }),
  )
  return (await Promise.all(found)).flat()
}

async function removeRules(places: ContainerdPaths): Promise<void> {
  for (const program of ['iptables', 'ip6tables']) await removeNat(program, places)
  await removeTables(places)
}

async function removeNat(program: string, { network }: ContainerdPaths): Promise<void> {
  const saved = await run(`${program}-save`, ['-t', 'nat']).catch(() => ({ stdout: '' }))
  for (const args of natRemovals(saved.stdout, network)) await run(program, ['-w', '-t', 'nat', ...args])
}

/** Removes nftables tables named after the cluster, which are useless without its pods. */
async function removeTables({ network }: ContainerdPaths): Promise<void> {
  // Without nft there are no tables.
  for (const table of await listNftTables().catch(() => [])) {
    const [family, name] = table.split(' ') as [NftFamily, string]
    if (name.startsWith(`${network}-`)) await deleteNftTable(family, name)
  }
}

/** The result cache of the CNI library, whose path is fixed. */
const RESULTS = '/var/lib/cni/results'

/** Files named after the network, or for the loopback after the sandbox. */
async function removeNetworkFiles({ network, root }: ContainerdPaths): Promise<void> {
  const sandboxes = await readdir(join(root, 'io.containerd.grpc.v1.cri', 'sandboxes')).catch(() => [])
  const own = new Set(sandboxes.map((id) => `cni-loopback-${id}-lo`))
  for (const name of await readdir(RESULTS).catch(() => []))
    if (own.has(name) || name.startsWith(`${network}-`)) await rm(join(RESULTS, name), { force: true })
  for (const folder of [RESULTS, dirname(RESULTS)]) await rmdir(folder).catch(() => undefined)
}
