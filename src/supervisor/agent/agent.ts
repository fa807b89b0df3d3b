/**
 * The agent of a worker: keeps a tunnel to the server open, asks it for the plan of this node, writes down what the plan says
 * and has the supervisor do it. The two do not wait for each other, and neither does the supervisor: a server that is away
 * takes nothing from a node that runs. The agent empties the machine only when the API of the server answers for minutes that it has
 * no such node.
 */
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'

import type { Host } from '../host.ts'
import { type NodeSettings, wantedProcesses } from '../settings.ts'
import type { Supervisor } from '../supervisor.ts'
import { afterAnswer, afterTunnel, NO_NOT_FOUND, type PlanPatience, type TunnelPatience } from './patience.ts'
import { type NodePlan, planFiles, readPlan } from './plan.ts'
import { cleanMachine } from './removal.ts'
import { type AgentServer, type PlanAnswer, planAnswer } from './server.ts'

export interface AgentOptions {
  readonly host: Host
  readonly server: AgentServer
  /** Asked once, for the first plan that wants something to run. */
  readonly createSupervisor: (settings: NodeSettings) => Pick<Supervisor, 'run' | 'change' | 'restart'>
  /** Told whenever the status is another. */
  readonly report?: () => void
}

export interface AgentStatus {
  readonly isConnected: boolean
  readonly connects: number
  /** How often the server was asked, and what became of it the last time. */
  readonly asked: number
  readonly lastAnswer: PlanAnswer['kind'] | 'unusable' | undefined
}

export class Agent {
  readonly #options: AgentOptions
  readonly #status = {
    isConnected: false,
    connects: 0,
    asked: 0,
    lastAnswer: undefined as AgentStatus['lastAnswer'],
  }
  readonly #removed = new AbortController()
  readonly #known = Promise.withResolvers<void>()
  #askNow: () => void = () => undefined
  #plan: NodePlan | undefined
  #supervisor: ReturnType<AgentOptions['createSupervisor']> | undefined
  #supervising: Promise<void> = Promise.resolve()

  constructor(options: AgentOptions) {
    this.#options = options
  }

  get status(): AgentStatus {
    return this.#status
  }

  /** Until the signal is aborted, or this is no node any more; then the machine is clean. */
  async run(signal: AbortSignal): Promise<'stopped' | 'removed'> {
    const { host } = this.#options
    const stop = AbortSignal.any([signal, this.#removed.signal])
    await this.#resume(stop)
    await Promise.all([this.#stayConnected(stop), this.#followPlan(stop)])
    await this.#supervising
    if (!this.#removed.signal.aborted || signal.aborted) return 'stopped'
    host.say('this machine is no node any more and is cleaned')
    await cleanMachine(host)
    return 'removed'
  }

  /** What the server said before this process began holds until it says something else. */
  async #resume(signal: AbortSignal): Promise<void> {
    const { files, layout } = this.#options.host
    if (await files.exists(layout.connectedMark)) this.#known.resolve()
    const text = await files.read(layout.lastPlan)
    if (text !== undefined) await this.#take(planAnswer(200, text, ''), signal)
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    const { host, server } = this.#options
    const { files, layout, clock } = host
    let patience: TunnelPatience = { refusals: 0, breaks: 0 }
    while (!signal.aborted) {
      const way = (await files.exists(layout.connectedMark)) ? 'connect' : 'register'
      let openedMs: number | undefined
      let marking = Promise.resolve()
      const opened = (): void => {
        openedMs = clock.elapsed()
        marking = this.#connected(way)
      }
      const end = await server.tunnel(way, opened, signal)
      await marking
      this.#status.isConnected = false
      this.#options.report?.()
      if (signal.aborted) return
      const livedMs = openedMs === undefined ? 0 : clock.elapsed() - openedMs
      const next = afterTunnel(patience, end, livedMs)
      patience = next.patience
      if (next.isWorthSaying) host.say(`not connected to the server: ${'message' in end ? end.message : 'it hung up'}`)
      if (next.isToRegister) await files.remove(layout.connectedMark)
      await rest(host, next.waitMs, signal)
    }
  }

  async #connected(way: 'connect' | 'register'): Promise<void> {
    const { host } = this.#options
    this.#status.isConnected = true
    this.#status.connects++
    host.say('connected to the server')
    if (way === 'register') await host.files.write(host.layout.connectedMark, '')
    this.#known.resolve()
    this.#askNow()
  }

  async #followPlan(signal: AbortSignal): Promise<void> {
    const { host, server } = this.#options
    await Promise.race([this.#known.promise, aborted(signal)])
    let patience: PlanPatience = NO_NOT_FOUND
    while (!signal.aborted) {
      const answer = await server.plan(signal)
      if (signal.aborted) return
      this.#status.asked++
      await this.#take(answer, signal)
      this.#options.report?.()
      const times = { nowMs: host.clock.elapsed(), intervalMs: this.#plan?.intervalMs ?? DEFAULT_INTERVAL_MS }
      const next = afterAnswer(patience, answer, times)
      if (next.kind === 'removed') {
        host.say(`the server says: ${next.message}`)
        return this.#removed.abort()
      }
      patience = next.patience
      const wake = Promise.withResolvers<void>()
      this.#askNow = wake.resolve
      const over = new AbortController()
      await Promise.race([rest(host, next.ms, AbortSignal.any([signal, over.signal])), wake.promise])
      over.abort()
    }
  }

  async #take(answer: PlanAnswer, signal: AbortSignal): Promise<void> {
    const { host } = this.#options
    this.#status.lastAnswer = answer.kind
    if (answer.kind === 'failed') return host.say(`no plan from the server: ${answer.message}`)
    if (answer.kind !== 'plan') return
    try {
      const plan = readPlan(answer.document)
      await this.#apply(plan, signal)
      await writeIfOther(host, host.layout.lastPlan, JSON.stringify(answer.document))
    } catch (error) {
      if (signal.aborted) return
      this.#status.lastAnswer = 'unusable'
      host.say(`the plan cannot be used: ${(error as Error).message}`)
    }
  }

  async #apply(plan: NodePlan, signal: AbortSignal): Promise<void> {
    const { host, createSupervisor } = this.#options
    const changed: string[] = []
    for (const { path, text } of planFiles(plan, host.layout))
      if (await writeIfOther(host, path, text)) changed.push(path)
    this.#plan = plan
    if (plan.isFilesOnly || plan.settings === undefined) return
    if (this.#supervisor === undefined) {
      this.#supervisor = createSupervisor(plan.settings)
      // It rejects with the reason of the signal, which whoever aborted knows.
      this.#supervising = this.#supervisor.run(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      return
    }
    this.#supervisor.change(plan.settings)
    // flanneld is started with kubelet.
    const readers = wantedProcesses(plan.settings).filter((name) => name !== 'flanneld')
    if (changed.length > 0) this.#supervisor.restart(readers)
  }
}

const DEFAULT_INTERVAL_MS = 120_000

/** Whether it was another. */
async function writeIfOther({ files }: Host, path: string, text: string): Promise<boolean> {
  if ((await files.read(path)) === text) return false
  await files.write(path, text)
  return true
}

/** Returns early when the signal is aborted. */
async function rest({ clock }: Host, ms: number, signal: AbortSignal): Promise<void> {
  await sleep(clock, ms, signal).catch(() => undefined)
}
