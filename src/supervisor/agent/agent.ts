/**
 * The agent of a worker node. It keeps a tunnel to the server open, requests the plan of this node, writes its files
 * and passes it to the supervisor. Tunnel, plan and supervisor are independent, so an unreachable server does not
 * stop a running node. The agent cleans the machine only after the server's API has reported for minutes that the
 * node does not exist.
 */
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'

import type { Host } from '../host.ts'
import { type NodeSettings, wantedProcesses } from '../settings.ts'
import type { Supervisor } from '../supervisor.ts'
import { type NodePlan, planFiles, readPlan } from './plan.ts'
import { cleanMachine } from './removal.ts'
import { afterAnswer, afterTunnel, NO_NOT_FOUND, type PlanRetryState, type TunnelRetryState } from './retry-state.ts'
import { type AgentServer, type PlanAnswer, planAnswer } from './server.ts'

export interface AgentOptions {
  readonly host: Host
  readonly server: AgentServer
  /** Called once, for the first plan that starts processes. */
  readonly createSupervisor: (settings: NodeSettings) => Pick<Supervisor, 'run' | 'change' | 'restart'>
  /** Called whenever the status changes. */
  readonly report?: () => void
}

export interface AgentStatus {
  readonly isConnected: boolean
  readonly connects: number
  /** The number of plan requests, and the result of the last. */
  readonly planRequests: number
  readonly lastAnswer: PlanAnswer['kind'] | 'unusable' | undefined
}

export class Agent {
  readonly #options: AgentOptions
  readonly #status = {
    isConnected: false,
    connects: 0,
    planRequests: 0,
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

  /** Runs until the signal is aborted or the node is removed; then the machine is clean. */
  async run(signal: AbortSignal): Promise<'stopped' | 'removed'> {
    const { host } = this.#options
    const stop = AbortSignal.any([signal, this.#removed.signal])
    await this.#resume(stop)
    await Promise.all([this.#stayConnected(stop), this.#followPlan(stop)])
    await this.#supervising
    if (!this.#removed.signal.aborted || signal.aborted) return 'stopped'
    if (this.#plan === undefined) await this.#forgetServer()
    else {
      host.say('this node was removed; cleaning the machine')
      await cleanMachine(host)
    }
    return 'removed'
  }

  /** Without a plan, all other files of the machine are those of others. */
  async #forgetServer(): Promise<void> {
    const { say, files, layout } = this.#options.host
    say('this machine was removed from the server')
    for (const path of [layout.connectedMark, layout.credential]) await files.remove(path)
  }

  /** The stored plan applies until the server sends another. */
  async #resume(signal: AbortSignal): Promise<void> {
    const { files, layout } = this.#options.host
    if (await files.exists(layout.connectedMark)) this.#known.resolve()
    const text = await files.read(layout.lastPlan)
    if (text !== undefined) await this.#take(planAnswer(200, text, ''), signal)
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    const { host, server } = this.#options
    const { files, layout, clock } = host
    let patience: TunnelRetryState = { refusals: 0, breaks: 0 }
    let wasRegistered = false
    while (!signal.aborted) {
      const mode = (await files.exists(layout.connectedMark)) ? 'connect' : 'register'
      wasRegistered ||= mode === 'connect'
      let openedMs: number | undefined
      let marking = Promise.resolve()
      const opened = (): void => {
        openedMs = clock.elapsed()
        marking = this.#connected(mode)
      }
      const end = await server.tunnel(mode, opened, signal)
      await marking
      this.#status.isConnected = false
      this.#options.report?.()
      if (signal.aborted) return
      const livedMs = openedMs === undefined ? 0 : clock.elapsed() - openedMs
      const next = afterTunnel(patience, end, livedMs)
      patience = next.patience
      if (next.isWorthSaying) host.say(`not connected to the server: ${'message' in end ? end.message : 'it hung up'}`)
      wasRegistered ||= openedMs !== undefined
      if (mode === 'register' && end.kind === 'refused' && wasRegistered) {
        // The server may still know this machine, and a proxy before it may have refused. The token may have expired.
        await files.write(layout.connectedMark, '')
        patience = { ...patience, refusals: 0 }
      } else if (next.isToRegister) await files.remove(layout.connectedMark)
      await rest(host, next.waitMs, signal)
    }
  }

  async #connected(mode: 'connect' | 'register'): Promise<void> {
    const { host } = this.#options
    this.#status.isConnected = true
    this.#status.connects++
    host.say('connected to the server')
    if (mode === 'register') await host.files.write(host.layout.connectedMark, '')
    this.#known.resolve()
    this.#askNow()
  }

  async #followPlan(signal: AbortSignal): Promise<void> {
    const { host, server } = this.#options
    await Promise.race([this.#known.promise, aborted(signal)])
    let patience: PlanRetryState = NO_NOT_FOUND
    while (!signal.aborted) {
      const answer = await server.plan(signal)
      if (signal.aborted) return
      this.#status.planRequests++
      await this.#take(answer, signal)
      this.#options.report?.()
      const times = { nowMs: host.clock.elapsed(), intervalMs: this.#plan?.intervalMs ?? DEFAULT_INTERVAL_MS }
      const next = afterAnswer(patience, answer, times)
      if (next.kind === 'removed') {
        host.say(`the server answered: ${next.message}`)
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
      // It rejects with the reason of the signal, which the caller knows.
      this.#supervising = this.#supervisor.run(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
      return
    }
    this.#supervisor.change(plan.settings)
    // flanneld starts together with kubelet.
    const readers = wantedProcesses(plan.settings).filter((name) => name !== 'flanneld')
    if (changed.length > 0) this.#supervisor.restart(readers)
  }
}

const DEFAULT_INTERVAL_MS = 120_000

/** True if the plan changed. */
async function writeIfOther({ files }: Host, path: string, text: string): Promise<boolean> {
  if ((await files.read(path)) === text) return false
  await files.write(path, text)
  return true
}

/** Returns early if the signal is aborted. */
async function rest({ clock }: Host, ms: number, signal: AbortSignal): Promise<void> {
  await sleep(clock, ms, signal).catch(() => undefined)
}
