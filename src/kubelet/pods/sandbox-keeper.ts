/** The sandbox of one pod: found again after a restart, made, and made anew when it has gone. */
import type { Pod } from '#apis/core/v1.ts'
import { RuntimeClasses } from '#apis/node/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { isNotFound } from '#meta/status.ts'

import { callText, messageText } from '../cri/call-text.ts'
import { SANDBOX_STATE } from '../cri/codes.ts'
import type { PodSandboxConfig } from '../cri/sandbox-messages.ts'
import { dnsOf, parseResolvConf } from './dns.ts'
import type { PodHost } from './pod-host.ts'
import { sandboxConfig } from './sandbox-config.ts'

export interface Sandbox {
  readonly id: string
  readonly config: Input<PodSandboxConfig>
  /** Of the pod; none for who has the node's network. */
  readonly ips: readonly string[]
}

export class SandboxKeeper {
  readonly #host: PodHost
  readonly #seen: string
  /** The one that is ready. */
  current: Sandbox | undefined
  /** The last that was given up. */
  #left: string | undefined

  constructor(host: PodHost, seen: string) {
    this.#host = host
    this.#seen = seen
  }

  /** The id of one that was there and is not ready any more. */
  lost(pod: Pod): string | undefined {
    const [newest] = this.#host.held.of(pod.metadata.uid ?? '').sandboxes
    if (newest === undefined || newest.state === SANDBOX_STATE.ready || newest.id === this.#left) return undefined
    return this.current === undefined || this.current.id === newest.id ? newest.id : undefined
  }

  /** It is stopped, and nothing is to be in it any more. */
  leave(id: string): void {
    this.#left = id
    this.current = undefined
  }

  /** From before a restart of the kubelet. */
  async adopt(pod: Pod): Promise<void> {
    const [newest] = this.#host.held.of(pod.metadata.uid ?? '').sandboxes
    if (this.current !== undefined || newest?.state !== SANDBOX_STATE.ready) return
    this.current = await this.#describe(newest.id, await this.#config(pod, newest.metadata?.attempt ?? 0))
  }

  /** Whether there is one now. */
  async make(pod: Pod, signal: AbortSignal): Promise<boolean> {
    const [newest] = this.#host.held.of(pod.metadata.uid ?? '').sandboxes
    const attempt = newest === undefined ? 0 : (newest.metadata?.attempt ?? 0) + 1
    const { meters } = this.#host
    const hasUsers = pod.spec.hostUsers === false
    meters.family('kubelet_started_pods_total').labels().inc()
    if (hasUsers) meters.family('kubelet_started_user_namespaced_pods_total').labels().inc()
    try {
      if (hasUsers) await this.#expectUsers(await this.#handler(pod))
      const config = await this.#config(pod, attempt)
      this.current = await this.#describe(await this.#run(pod, config, signal), config)
    } catch (error) {
      if (signal.aborted) throw error
      meters.family('kubelet_started_pods_errors_total').labels().inc()
      if (hasUsers) meters.family('kubelet_started_user_namespaced_pods_errors_total').labels().inc()
      const message = `Failed to create pod sandbox: ${callText(error)}`
      this.#host.note(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message })
    }
    return this.current !== undefined
  }

  /** Returns its id. */
  async #run(pod: Pod, config: Input<PodSandboxConfig>, signal: AbortSignal): Promise<string> {
    const { runtime, meters, clock } = this.#host
    const runtimeHandler = await this.#handler(pod)
    const startMs = clock.elapsed()
    try {
      return (await runtime.runPodSandbox({ config, runtimeHandler }, { signal })).podSandboxId
    } catch (error) {
      meters.family('kubelet_run_podsandbox_errors_total').labels(runtimeHandler).inc()
      throw error
    } finally {
      const durations = meters.family('kubelet_run_podsandbox_duration_seconds')
      durations.labels(runtimeHandler).observe((clock.elapsed() - startMs) / 1000)
    }
  }

  /** Who wants users of its own must not run with those of the node. */
  async #expectUsers(handler: string): Promise<void> {
    const { runtimeHandlers } = await this.#host.runtime.status({})
    const found = runtimeHandlers.find(({ name }) => name === handler)
    if (found?.features?.userNamespaces === true) return
    const who = handler === '' ? 'runtime' : `RuntimeClass handler ${goQuote(handler)}`
    throw new Error(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`)
  }

  async #describe(id: string, config: Input<PodSandboxConfig>): Promise<Sandbox | undefined> {
    const { status } = await this.#host.runtime.podSandboxStatus({ podSandboxId: id })
    if (status?.state !== SANDBOX_STATE.ready) return undefined
    const { ip = '', additionalIps = [] } = status.network ?? {}
    return { id, config, ips: [ip, ...additionalIps.map((each) => each.ip)].filter((each) => each !== '') }
  }

  /** Of its RuntimeClass; '' for the runtime's own choice. */
  async #handler({ spec: { runtimeClassName: name = '' } }: Pod): Promise<string> {
    if (name === '') return ''
    try {
      return (await this.#host.client.get(RuntimeClasses, { name })).handler
    } catch (error) {
      const text = isNotFound(error)
        ? `runtimeclass.node.k8s.io "${name}" not found`
        : `failed to lookup RuntimeClass ${name}: ${messageText(error)}`
      throw new Error(text, { cause: error })
    }
  }

  async #config(pod: Pod, attempt: number): Promise<Input<PodSandboxConfig>> {
    const { facts, files } = this.#host
    const text = facts.resolvConf === '' ? '' : await files.read(facts.resolvConf)
    const { config: dns, notes } = dnsOf(pod, facts, parseResolvConf(text))
    for (const note of notes) this.#host.note(pod, note)
    const hasOwnCpus = this.#host.grants.hasOwnCpus(pod.metadata.uid ?? '')
    const users = pod.spec.hostUsers === false ? await files.userRange(pod.metadata.uid ?? '') : undefined
    return sandboxConfig({ pod, facts: { ...facts, hasOwnCpus }, dns, attempt, seen: this.#seen, users })
  }
}
