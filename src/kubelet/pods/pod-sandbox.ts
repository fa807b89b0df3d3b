/**
 * Manages the sandbox of one pod: adopts it after a restart of the kubelet, creates it, and replaces a lost sandbox.
 */
import type { Pod } from '#apis/core/v1.ts'
import { RuntimeClasses } from '#apis/node/v1.ts'
import type { PodSandboxConfig } from '#apis/wire/cri.ts'
import { callText, messageText } from '#cri/call-text.ts'
import { SANDBOX_STATE } from '#cri/codes.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import { sandboxConfig } from '../pod/sandbox-config.ts'
import { dnsOf, parseResolvConf } from './dns.ts'
import type { PodContext } from './pod-context.ts'
import type { PodHost } from './pod-host.ts'
import { type PodState, type Sandbox, uidOf } from './pod-state.ts'

/** Takes over a ready sandbox from before a restart of the kubelet. */
export async function adoptSandbox({ host, state }: Pick<PodContext, 'host' | 'state'>): Promise<void> {
  const [newest] = host.pleg.of(uidOf(state)).sandboxes
  if (state.sandbox !== undefined || newest?.state !== SANDBOX_STATE.ready) return
  state.sandbox = await describe(host, newest.id, await configOf(host, state, newest.metadata?.attempt ?? 0))
}

/** Returns true if the sandbox is ready. */
export async function createSandbox({ host, state, signal }: PodContext): Promise<boolean> {
  const { pod } = state
  const [newest] = host.pleg.of(uidOf(state)).sandboxes
  const attempt = newest === undefined ? 0 : (newest.metadata?.attempt ?? 0) + 1
  const { meters } = host
  const hasUsers = pod.spec.hostUsers === false
  meters.family('kubelet_started_pods_total').labels().inc()
  if (hasUsers) meters.family('kubelet_started_user_namespaced_pods_total').labels().inc()
  try {
    if (hasUsers) await expectUsers(host, await handlerOf(host, pod))
    const config = await configOf(host, state, attempt)
    const runtimeHandler = await handlerOf(host, pod)
    state.sandbox = await describe(host, await run(host, { config, runtimeHandler }, signal), config)
  } catch (error) {
    if (signal.aborted) throw error
    meters.family('kubelet_started_pods_errors_total').labels().inc()
    if (hasUsers) meters.family('kubelet_started_user_namespaced_pods_errors_total').labels().inc()
    const message = `Failed to create pod sandbox: ${callText(error)}`
    host.recordEvent(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message })
  }
  return state.sandbox !== undefined
}

interface SandboxRequest {
  readonly config: Input<PodSandboxConfig>
  readonly runtimeHandler: string
}

/** Returns the sandbox ID. */
async function run({ runtime, meters, clock }: PodHost, request: SandboxRequest, signal: AbortSignal): Promise<string> {
  const { runtimeHandler } = request
  const startMs = clock.elapsed()
  try {
    return (await runtime.runPodSandbox(request, { signal })).podSandboxId
  } catch (error) {
    meters.family('kubelet_run_podsandbox_errors_total').labels(runtimeHandler).inc()
    throw error
  } finally {
    const durations = meters.family('kubelet_run_podsandbox_duration_seconds')
    durations.labels(runtimeHandler).observe((clock.elapsed() - startMs) / 1000)
  }
}

/** A pod with hostUsers=false must not run in the node's user namespace. */
async function expectUsers({ runtime }: PodHost, handler: string): Promise<void> {
  const { runtimeHandlers } = await runtime.status({})
  const found = runtimeHandlers.find(({ name }) => name === handler)
  if (found?.features?.userNamespaces === true) return
  const who = handler === '' ? 'runtime' : `RuntimeClass handler ${goQuote(handler)}`
  throw new Error(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`)
}

async function describe(
  { runtime }: PodHost,
  id: string,
  config: Input<PodSandboxConfig>,
): Promise<Sandbox | undefined> {
  const { status } = await runtime.podSandboxStatus({ podSandboxId: id })
  if (status?.state !== SANDBOX_STATE.ready) return undefined
  const { ip = '', additionalIps = [] } = status.network ?? {}
  return { id, config, ips: [ip, ...additionalIps.map((each) => each.ip)].filter((each) => each !== '') }
}

/** The handler of its RuntimeClass; '' for the default. */
async function handlerOf({ client }: PodHost, { spec: { runtimeClassName: name = '' } }: Pod): Promise<string> {
  if (name === '') return ''
  try {
    return (await client.get(RuntimeClasses, { name })).handler
  } catch (error) {
    const text = isNotFound(error)
      ? `runtimeclass.node.k8s.io "${name}" not found`
      : `failed to lookup RuntimeClass ${name}: ${messageText(error)}`
    throw new Error(text, { cause: error })
  }
}

async function configOf(
  { facts, files, containerManager, recordEvent }: PodHost,
  state: PodState,
  attempt: number,
): Promise<Input<PodSandboxConfig>> {
  const { pod } = state
  const uid = uidOf(state)
  const text = facts.resolvConf === '' ? '' : await files.read(facts.resolvConf)
  const { config: dns, events } = dnsOf(pod, facts, parseResolvConf(text))
  for (const event of events) recordEvent(pod, event)
  const hasExclusiveCpus = containerManager.hasExclusiveCpus(uid)
  const users = pod.spec.hostUsers === false ? await files.userRange(uid) : undefined
  const seen = microTimeOf(state.seenMs)
  return sandboxConfig({ pod, facts: { ...facts, hasExclusiveCpus }, dns, attempt, seen, users })
}
