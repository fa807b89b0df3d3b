/** Evicts or deletes the pods of a node and waits until they have disappeared. Evictions respect disruption budgets. */
import type { Pod } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { durationOfMs } from '#lib/go/duration.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { isForbidden, isNotFound, isTooManyRequests, statusOf } from '#meta/status.ts'

import type { Invocation } from '../command.ts'
import { asError, Failures, KubectlError } from '../errors.ts'
import type { DryRun } from '../flag-sets.ts'
import { namePrinter } from '../print/structured.ts'
import { listAll, resourcePath } from '../related-objects.ts'
import type { Rest } from '../session/rest.ts'
import { type DaemonSetState, isLongDeleted, type PodsForDeletion, podsForDeletion } from './pods-for-deletion.ts'

/** The pause after a rejected eviction. */
const RETRY_MS = 5000
const POLL_MS = 1000
/** Upstream's value for no time limit. */
const FOREVER_TEXT = '2562047h47m16.854775807s'

/** The members of an invocation that drain uses. */
export interface DrainContext extends Pick<Invocation, 'session' | 'stdout' | 'stderr' | 'clock' | 'signal'> {
  readonly flags: {
    readonly 'chunk-size': number
    readonly 'delete-emptydir-data': boolean
    readonly 'disable-eviction': boolean
    readonly force: boolean
    readonly 'grace-period': number
    readonly 'ignore-daemonsets': boolean
    readonly 'pod-selector': string
    readonly 'skip-wait-for-delete-timeout': number
    readonly timeout: number
  }
}

/** Throws KubectlError after printing the remaining pods. */
export async function evictPodsOf(invocation: DrainContext, node: string, dryRun: DryRun): Promise<void> {
  const { stdout, stderr, session, flags } = invocation
  const list = (): Promise<PodsForDeletion> => podsOn(invocation, node)
  const { pods, warnings, errors } = await list()
  throwAll(errors)
  if (warnings !== '') stderr.write(`Warning: ${warnings}\n`)
  if (dryRun === 'client') {
    for (const { metadata } of pods) stdout.write(`evicting pod ${metadata.namespace}/${metadata.name} (dry run)\n`)
    return
  }
  try {
    const emptying = new PodRemover(invocation, await session.rest(), dryRun)
    if (flags['disable-eviction']) await emptying.deleteAll(pods)
    else await emptying.evictAll(pods)
  } catch (thrown) {
    const left = await list().catch(() => undefined)
    if (left !== undefined && left.pods.length > 0) {
      const text = asError(thrown).message
      stderr.write(`There are pending pods in node "${node}" when an error occurred: ${text}\n`)
      for (const { metadata } of left.pods) stderr.write(`pod/${metadata.name}\n`)
    }
    throw thrown
  }
}

function throwAll(errors: readonly string[]): void {
  if (errors.length > 0) throw new Failures(errors.map((text) => new KubectlError(text)))
}

async function podsOn({ flags, session, clock }: DrainContext, node: string): Promise<PodsForDeletion> {
  const rest = await session.rest()
  const selecting = { labels: flags['pod-selector'], fields: `spec.nodeName=${node}` }
  const pods = await listAll<Pod>(rest, '/api/v1/pods', flags['chunk-size'], selecting)
  const options = {
    force: flags.force,
    ignoreDaemonSets: flags['ignore-daemonsets'],
    deleteEmptyDirData: flags['delete-emptydir-data'],
    skipDeletedAfterSeconds: flags['skip-wait-for-delete-timeout'],
  }
  const daemonSetOf = ({ metadata }: Pod, name: string): Promise<DaemonSetState> =>
    rest.json(resourcePath('apps/v1/daemonsets', metadata.namespace ?? '', name)).then(
      () => 'there' as const,
      (error: unknown) => ({ isMissing: isNotFound(error), message: asError(error).message }),
    )
  return podsForDeletion(pods, options, { nowMs: clock.now(), daemonSetOf })
}

class PodRemover {
  readonly #invocation: DrainContext
  readonly #rest: Rest
  readonly #dryRun: DryRun
  /** Measured with the injected clock; infinite without a limit. */
  readonly #end: number

  constructor(invocation: DrainContext, rest: Rest, dryRun: DryRun) {
    const { clock, flags } = invocation
    this.#invocation = invocation
    this.#rest = rest
    this.#dryRun = dryRun
    this.#end = flags.timeout === 0 ? Infinity : clock.elapsed() + flags.timeout
  }

  async evictAll(pods: readonly Pod[]): Promise<void> {
    const outcomes = await Promise.all(pods.map((pod) => this.#evict(pod).then(() => undefined, asError)))
    const failed = outcomes.filter((error) => error !== undefined)
    if (failed.length > 0) throw new Failures(failed)
  }

  async deleteAll(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) {
      const path = pathOf(pod)
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', ...this.#deleteOptions() }
      await this.#rest.raw({ method: 'DELETE', path, body }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    }
    await this.#untilGone(pods, 'deleted', 'deletion failed')
  }

  /** Retries while a disruption budget rejects the eviction. */
  async #evict(given: Pod): Promise<void> {
    const { stdout, clock, flags } = this.#invocation
    let pod = given
    for (;;) {
      const { name = '', namespace = '' } = pod.metadata
      stdout.write(`evicting pod ${namespace}/${name}${this.#dryRun === 'server' ? ' (server dry run)' : ''}\n`)
      if (clock.elapsed() >= this.#end) {
        const limit = flags.timeout === 0 ? FOREVER_TEXT : durationOfMs(flags.timeout)
        throw new KubectlError(`error when evicting pods/"${name}" -n "${namespace}": global timeout reached: ${limit}`)
      }
      const outcome = await this.#ask(pod)
      if (outcome === 'gone') return
      if (outcome === 'accepted') break
      pod = await this.#rest.json<Pod & JsonObject>(pathOf(pod)).catch(() => pod)
    }
    if (this.#dryRun === 'server') return
    const { name = '', namespace = '' } = given.metadata
    await this.#untilGone([pod], 'evicted', 'eviction failed').catch((error: unknown) => {
      const why = asError(error).message
      throw new KubectlError(`error when waiting for pod "${name}" in namespace "${namespace}" to terminate: ${why}`, {
        cause: error,
      })
    })
  }

  async #ask(pod: Pod): Promise<'accepted' | 'gone' | 'again'> {
    const { name = '', namespace = '', deletionTimestamp } = pod.metadata
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: this.#deleteOptions(),
    }
    try {
      await this.#rest.raw({ method: 'POST', path: `${pathOf(pod)}/eviction`, body })
      return 'accepted'
    } catch (error) {
      const why = asError(error).message
      if (isNotFound(error)) return 'gone'
      if (isTooManyRequests(error)) {
        return this.#later(`error when evicting pods/"${name}" -n "${namespace}"`, why)
      }
      if (!isTerminating(error)) {
        throw new KubectlError(`error when evicting pods/"${name}" -n "${namespace}": ${why}`, { cause: error })
      }
      // A terminating namespace rejects evictions, but deletes the pod anyway.
      if (deletionTimestamp !== undefined) return 'accepted'
      return this.#later(`error when evicting pod "${name}" from terminating namespace "${namespace}"`, why)
    }
  }

  async #later(what: string, why: string): Promise<'again'> {
    const { stderr, clock, signal } = this.#invocation
    stderr.write(`${what} (will retry after ${durationOfMs(RETRY_MS)}): ${why}\n`)
    await sleep(clock, RETRY_MS, signal)
    return 'again'
  }

  #deleteOptions(): object {
    const grace = this.#invocation.flags['grace-period']
    return {
      ...(grace >= 0 && { gracePeriodSeconds: grace }),
      ...(this.#dryRun === 'server' && { dryRun: ['All'] }),
    }
  }

  async #untilGone(pods: readonly Pod[], done: string, failed: string): Promise<void> {
    const { clock, signal } = this.#invocation
    let left = pods
    for (;;) {
      const still: Pod[] = []
      for (const pod of left) if (!(await this.#isGone(pod, done, failed))) still.push(pod)
      left = still
      if (left.length === 0) return
      if (clock.elapsed() >= this.#end) throw new KubectlError('context deadline exceeded')
      await sleep(clock, Math.max(0, Math.min(POLL_MS, this.#end - clock.elapsed())), signal)
    }
  }

  /** Reports the pod after it has disappeared. */
  async #isGone(pod: Pod, done: string, failed: string): Promise<boolean> {
    const { stdout, clock, flags } = this.#invocation
    const seconds = flags['skip-wait-for-delete-timeout']
    const say = (what: string): void => {
      const operation = `${what}${this.#dryRun === 'server' ? ' (server dry run)' : ''}`
      namePrinter({ operation }).print({ ...pod, apiVersion: 'v1', kind: 'Pod' } as unknown as JsonObject, stdout)
    }
    let now: Pod
    try {
      now = await this.#rest.json<Pod & JsonObject>(pathOf(pod))
    } catch (error) {
      say(isNotFound(error) ? done : failed)
      if (isNotFound(error)) return true
      throw error
    }
    if (now.metadata.uid !== pod.metadata.uid) {
      say(done)
      return true
    }
    if (!isLongDeleted(now, seconds, clock.now())) return false
    stdout.write(`pod "${pod.metadata.name}" has DeletionTimestamp older than ${seconds} seconds, skipping\n`)
    return true
  }
}

function pathOf({ metadata }: Pod): string {
  return resourcePath('v1/pods', metadata.namespace ?? '', metadata.name)
}

function isTerminating(error: unknown): boolean {
  const causes = statusOf(error)?.details?.causes ?? []
  return isForbidden(error) && causes.some(({ reason }) => reason === 'NamespaceTerminating')
}
