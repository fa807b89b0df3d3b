/** What a container wants done after its start and before its end. */
import type { LifecycleHandler } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'

import { type ProbeTarget } from '../probes/probe-action.ts'
import type { PodHost } from './pod-host.ts'

/** A request of a hook may take as long as the runtime lets commands. */
const REQUEST_SECONDS = 120

export interface HookPatience {
  /** 0 for no limit. */
  readonly timeoutSeconds?: number
  /** Nobody waits for it any more. */
  readonly signal?: AbortSignal
}

/** Rejects when the hook failed. */
export async function runHook(
  host: PodHost,
  { exec, httpGet, sleep: pause }: LifecycleHandler,
  target: ProbeTarget,
  { timeoutSeconds = 0, signal = host.signal }: HookPatience,
): Promise<void> {
  if (pause !== undefined) {
    return sleep(host.clock, pause.seconds * 1000, signal).catch((error: unknown) => {
      host.meters.family('kubelet_sleep_action_terminated_early_total').labels().inc()
      throw error
    })
  }
  if (exec !== undefined) {
    const { containerId } = target
    const request = { containerId, cmd: exec.command ?? [], timeout: timeoutSeconds }
    const { exitCode } = await host.runtime.execSync(request, { signal })
    if (exitCode !== 0) throw new Error(`command exited with ${exitCode}`)
    return
  }
  if (httpGet === undefined) return
  const answer = await host.askProbe({ httpGet, timeoutSeconds: timeoutSeconds || REQUEST_SECONDS }, target)
  if (answer.isFine !== true) throw new Error('the request failed')
}
