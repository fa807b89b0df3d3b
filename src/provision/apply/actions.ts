/**
 * Executes the steps of a `hyperkube build` plan. All steps are idempotent, because an interrupted run repeats them.
 */
import { type Clock, sleep } from '#lib/clock.ts'

import { droppedDocuments } from '../components/addons.ts'
import type { Health } from '../desired.ts'
import { type Machine, MachineError, type RunAsk } from '../machine.ts'
import type { Action, PortCheck } from '../plan/step.ts'
import type { ClusterApi } from './cluster-api.ts'
import { addMember, removeMember } from './etcd-members.ts'
import { copyFile, sendFile } from './upload.ts'

export interface Site {
  /** Finds a machine by name; rejects with MachineLost if it is unreachable. */
  machine(name: string): Promise<Machine>
  readonly api: ClusterApi
  readonly clock: Clock
}

type Doers = {
  readonly [T in Action['type']]: (
    action: Extract<Action, { type: T }>,
    context: { readonly site: Site; readonly host: string; readonly signal: AbortSignal },
  ) => Promise<unknown>
}

const DOERS: Doers = {
  ports: ({ checks }, { site }) => checkPorts(checks, site),
  claim: async ({ paths }, { site, host }) => (await site.machine(host)).claim({ paths }),
  upload: async ({ upload }, { site, host, signal }) => sendFile(await site.machine(host), upload, signal),
  copy: async ({ from, file }, { site, host, signal }) =>
    copyFile(await site.machine(from), await site.machine(host), file, signal),
  run: async ({ ask }, { site, host, signal }) => runProgram(await site.machine(host), ask, signal),
  async write({ files }, { site, host }) {
    const machine = await site.machine(host)
    for (const file of files) await machine.write(file)
  },
  async manifest({ path, manifest }, { site, host }) {
    const content = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)
    await (await site.machine(host)).write({ path, mode: 0o600, content })
  },
  async serve({ service, health }, { site, host, signal }) {
    const machine = await site.machine(host)
    await machine.serve({ service })
    if (health !== undefined)
      await becomesHealthy({ machine, service: service.name, health, clock: site.clock, signal })
  },
  healthy: async ({ service, health }, { site, host, signal }) =>
    becomesHealthy({ machine: await site.machine(host), service, health, clock: site.clock, signal }),
  retire: async ({ name }, { site, host }) => (await site.machine(host)).retire({ name }),
  remove: async ({ paths }, { site, host }) => (await site.machine(host)).remove({ paths }),
  async restore({ home, services, before }, { site, host, signal }) {
    const machine = await site.machine(host)
    for (const name of services) await machine.retire({ name })
    for (const command of before) await runProgram(machine, { command, timeoutMs: RESTORE_MS }, signal)
    await machine.restore({})
    await machine.remove({ paths: [home] })
  },
  async 'join-etcd'({ through, health, name, peerUrl, file }, { site, host, signal }) {
    const machine = await site.machine(through)
    const members = await patiently(site.clock, signal, () => addMember(machine, health, peerUrl))
    const cluster = members.flatMap((member) =>
      member.peerUrls.map((url) => `${url === peerUrl ? name : member.name}=${url}`),
    )
    const text = `ETCD_INITIAL_CLUSTER=${cluster.join(',')}\nETCD_INITIAL_CLUSTER_STATE=existing\n`
    await (await site.machine(host)).write({ path: file, mode: 0o600, content: Buffer.from(text) })
  },
  async 'leave-etcd'({ through, health, peerUrl }, { site, signal }) {
    const machine = await site.machine(through)
    await patiently(site.clock, signal, () => removeMember(machine, health, peerUrl))
  },
  drain: ({ node, mode }, { site, signal }) => site.api.drain(node, mode, signal),
  ready: ({ node, uncordons }, { site, signal }) => site.api.ready(node, uncordons, signal),
  node: ({ node, desired, dropped }, { site, signal }) => site.api.setNode(node, desired, dropped, signal),
  'delete-node': ({ node }, { site, signal }) => site.api.deleteNode(node, signal),
  'save-state': ({ state }, { site, signal }) => site.api.saveState(state, signal),
  'rewrite-secrets': (_, { site, signal }) => site.api.rewriteSecrets(signal),
  'restart-pods': (_, { site, signal }) => site.api.restartPods(signal),
  async addon({ name, manifest, before }, { site, signal }) {
    if (manifest !== '') await site.api.apply(manifest, signal)
    for (const gone of droppedDocuments(before, manifest)) await site.api.delete(gone, signal)
    await site.api.saveAddon(name, manifest, signal)
  },
}

const RESTORE_MS = 300_000

export async function perform(action: Action, host: string, site: Site, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  // Each type maps to a function for actions of that type.
  const doer = DOERS[action.type] as (action: Action, context: object) => Promise<unknown>
  await doer(action, { site, host, signal })
}

/** Rejects with the output of a failed program. */
async function runProgram(machine: Machine, ask: RunAsk, signal: AbortSignal): Promise<void> {
  const { code, stderr } = await machine.run(ask, signal)
  if (code !== 0) throw new MachineError(`${ask.command.join(' ')}: ${stderr.trim() || `exit code ${code}`}`)
}

const MEMBERS_MS = 60_000
const MEMBERS_PAUSE_MS = 1000

/**
 * A membership change may depose the etcd leader, which then does not respond. A retry finds the change done or
 * performs it.
 */
async function patiently<T>(clock: Clock, signal: AbortSignal, change: () => Promise<T>): Promise<T> {
  const limit = clock.elapsed() + MEMBERS_MS
  for (;;) {
    try {
      return await change()
    } catch (error) {
      if (!(error instanceof MachineError) || clock.elapsed() >= limit) throw error
    }
    await sleep(clock, MEMBERS_PAUSE_MS, signal)
  }
}

interface HealthWait {
  readonly machine: Machine
  readonly service: string
  readonly health: Health
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** RKE's limit of ten times five seconds; a joining member needs time to catch up. */
const HEALTHY_MS = 120_000
const ASK_MS = 5000
const PAUSE_MS = 250
const LOG_LINES = 8

/** Rejects with the last answer and the last log lines of the service. */
async function becomesHealthy({ machine, service, health, clock, signal }: HealthWait): Promise<void> {
  const limit = clock.elapsed() + HEALTHY_MS
  for (;;) {
    const { status, text } = await machine.http({ ...health, timeoutMs: ASK_MS })
    if (status === 200) return
    if (clock.elapsed() >= limit) {
      const { text: words } = await machine.tail({ name: service, lines: LOG_LINES })
      throw new MachineError(`${service} is not healthy (${status || text}); its last log lines:\n${words}`)
    }
    await sleep(clock, PAUSE_MS, signal)
  }
}

const DIAL_MS = 5000
const TRIES = 3

/** Listens on all required ports, dials from every machine, and always stops listening. */
async function checkPorts(checks: readonly PortCheck[], site: Site): Promise<void> {
  const ports = Map.groupBy(checks, ({ to }) => to)
  const targets = await Promise.all([...ports.keys()].map((name) => site.machine(name)))
  try {
    await Promise.all(
      [...ports].map(async ([name, each]) =>
        (await site.machine(name)).listen({ ports: [...new Set(each.map(({ port }) => port))] }),
      ),
    )
    const problems = await Promise.all(
      [...Map.groupBy(checks, ({ from }) => from)].map(async ([from, own]) => {
        const machine = await site.machine(from)
        return (await Promise.all(own.map((check) => dialProblem(machine, check)))).flat()
      }),
    )
    const found = problems.flat()
    if (found.length > 0) throw new MachineError(`blocked ports between machines:\n  ${found.join('\n  ')}`)
  } finally {
    await Promise.allSettled(targets.map((machine) => machine.unlisten({})))
  }
}

async function dialProblem(machine: Machine, { from, to, address, port }: PortCheck): Promise<string[]> {
  let problem = ''
  for (let tries = 0; tries < TRIES; tries++) {
    ;({ problem } = await machine.dial({ host: address, port, timeoutMs: DIAL_MS }))
    if (problem === '') return []
  }
  return [`${from} → ${to} ${address}:${port}: ${problem}`]
}
