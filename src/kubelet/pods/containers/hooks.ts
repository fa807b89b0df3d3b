/** Runs the postStart and preStop hooks of a container. */
import type { LifecycleHandler } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'

import { type ProbeTarget } from '../../probes/probe-action.ts'
import type { PodHost } from '../pod-host.ts'

/** Timeout of HTTP hooks, equal to the runtime's timeout of commands. */
const REQUEST_SECONDS = 120

export interface HookLimits {
  /** 0 means no limit. */
  readonly timeoutSeconds?: number
  /** Aborts the hook. */
  readonly signal?: AbortSignal
}

/** Rejects when the hook fails. */
export async function runHook(
  host: PodHost,
  { exec, httpGet, sleep: pause }: LifecycleHandler,
  target: ProbeTarget,
  { timeoutSeconds = 0, signal = host.signal }: HookLimits,
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
  const answer = await host.runProbe({ httpGet, timeoutSeconds: timeoutSeconds || REQUEST_SECONDS }, target)
  if (answer.isFine !== true) throw new Error('the request failed')
}
