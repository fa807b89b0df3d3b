/**
 * Takes a private containerd off its machine. First as it should be done (containerd is asked to stop its pods, whereby CNI
 * gives addresses and rules back), then by hand for whatever is left: a crash in between leaves nothing that a second call
 * would not find, because all names follow from the data directory.
 */
import { execFile } from 'node:child_process'
import { access, readdir, readFile, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { unmountBelow } from '#lib/mount-table.ts'
import { deleteNftTable, listNftTables, type NftFamily } from '#lib/nft.ts'
import type { Random } from '#lib/random.ts'

import { runtimeBehind } from '../cri/client.ts'
import { SANDBOX_STATE } from '../cri/codes.ts'
import type { Runtime } from '../cri/runtime.ts'
import { processesIn, removeCgroups } from './cgroups.ts'
import { natRemovals } from './leftovers.ts'
import { type Places, placesOf } from './places.ts'
import { containerdIn, endProcesses, processes, shimsIn } from './process-table.ts'
import { keepContainerd } from './process.ts'
import { findPrograms } from './programs.ts'
import { answers, connect } from './start.ts'

export interface StopOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly env: Readonly<Record<string, string | undefined>>
  readonly programs?: string
  /** Put before programs, to lead into the network of its pods where that is not ours: `nsenter --net=…`. */
  readonly within?: readonly string[]
}

const run = promisify(execFile)

/** Ends all pods and processes; images and containers that ended stay. Whether any of it was running. */
export async function stopContainerd(options: StopOptions): Promise<boolean> {
  const { clock, log } = options
  const places = placesOf(options.dataDir)
  if (!(await isThere(places))) return false
  const isRunning = await runs(places)
  // Looked up first: a shim that is killed while it ends leaves its socket, when the folder that names it has gone already.
  const sockets = await shimSockets(places)
  if (isRunning)
    await stopPods(options, places).catch((error: unknown) =>
      log.error(error, 'Pods could not be stopped in good order'),
    )
  await endProcesses(containerdIn(await processes(), places), clock, STOP_MS)
  // In this order: a shim whose containers are killed would tell, and clean up, for nobody.
  await endProcesses(shimsIn(await processes(), places), clock, 0)
  await endProcesses(await processesIn(places.cgroupParent), clock, 0)
  for (const socket of sockets) await rm(socket, { force: true })
  await unmountBelow([places.stateFolder, places.root])
  // Rules in a namespace go with it.
  if (options.within === undefined) await removeRules(places)
  return isRunning
}

/** Stops, and removes all that was its own; whether there was anything. Harmless where there is none, and when repeated. */
export async function removeContainerd(options: StopOptions): Promise<boolean> {
  const places = placesOf(options.dataDir)
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
/** For each pod. Their containers are not asked: who wants them asked deletes the pods first. */
const POD_MS = 30_000

async function isThere({ folder, stateFolder }: Places): Promise<boolean> {
  const found = await Promise.allSettled([access(folder), access(stateFolder)])
  return found.some(({ status }) => status === 'fulfilled')
}

async function runs(places: Places): Promise<boolean> {
  const all = await processes()
  return containerdIn(all, places).length > 0 || shimsIn(all, places).length > 0
}

/** Starts containerd for it when it does not run. */
async function stopPods(options: StopOptions, places: Places): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const programs = await findPrograms(options.env, options.programs)
  const kept = await keepContainerd({ ...options, places, programs }, closing)
  const client = connect(places.socket, options)
  closing.defer(() => client.close())
  const runtime = runtimeBehind(client)
  await answers(runtime, kept, options.clock)
  const { items } = await runtime.listPodSandbox({})
  const isUp = items.filter(({ state }) => state === SANDBOX_STATE.ready)
  // One that is not ready may still hold an address, when its network could not be made.
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

/** Of shims; they lie in a folder that all containerds of the machine share. */
async function shimSockets({ stateFolder }: Places): Promise<string[]> {
  const tasks = join(stateFolder, 'state', 'io.containerd.runtime.v2.task', 'k8s.io')
  const found = (await readdir(tasks).catch(() => [])).flatMap((id) =>
    ['address', 'bootstrap.json'].map(async (file) => {
      const text = await readFile(join(tasks, id, file), 'utf8').catch(() => '')
      return /unix:\/\/(\/run\/containerd\/s\/[0-9a-f]{64})/.exec(text)?.[1] ?? []
    }),
  )
  return (await Promise.all(found)).flat()
}

async function removeRules(places: Places): Promise<void> {
  for (const program of ['iptables', 'ip6tables']) await removeNat(program, places)
  await removeTables(places)
}

async function removeNat(program: string, { network }: Places): Promise<void> {
  const saved = await run(`${program}-save`, ['-t', 'nat']).catch(() => ({ stdout: '' }))
  for (const args of natRemovals(saved.stdout, network)) await run(program, ['-w', '-t', 'nat', ...args])
}

/** Tables of nftables that are named after the cluster, whoever made them: they have no meaning without its pods. */
async function removeTables({ network }: Places): Promise<void> {
  // Who has no nft has none.
  for (const table of await listNftTables().catch(() => [])) {
    const [family, name] = table.split(' ') as [NftFamily, string]
    if (name.startsWith(`${network}-`)) await deleteNftTable(family, name)
  }
}

/** Where CNI's library remembers what it was told; it cannot be told another place. */
const RESULTS = '/var/lib/cni/results'

/** Named after the network, or, of the loopback, after the sandbox alone. */
async function removeNetworkFiles({ network, root }: Places): Promise<void> {
  const sandboxes = await readdir(join(root, 'io.containerd.grpc.v1.cri', 'sandboxes')).catch(() => [])
  const own = new Set(sandboxes.map((id) => `cni-loopback-${id}-lo`))
  for (const name of await readdir(RESULTS).catch(() => []))
    if (own.has(name) || name.startsWith(`${network}-`)) await rm(join(RESULTS, name), { force: true })
  for (const folder of [RESULTS, dirname(RESULTS)]) await rmdir(folder).catch(() => undefined)
}
