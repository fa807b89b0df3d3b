/** Ends whatever a runtime runs, because the machine stops being a node for now. The pods stay, and start again with it. */
import type { Logger } from '#lib/log.ts'

import { CONTAINER_STATE, SANDBOX_STATE } from './cri/codes.ts'
import type { Runtime } from './cri/runtime.ts'

/** Each container may take so long to end by itself. Failures are logged: who stops does not stop at them. */
export async function stopAll(runtime: Runtime, graceSeconds: number, log: Logger): Promise<void> {
  const timeoutMs = (graceSeconds + ANSWER_SECONDS) * 1000
  const each = async (what: string, ids: readonly string[], stop: (id: string) => Promise<unknown>): Promise<void> => {
    const failed = (error: unknown): void => log.error(error, 'What runs could not be stopped', { what })
    await Promise.all(ids.map((id) => stop(id).catch(failed)))
  }
  try {
    const { containers } = await runtime.listContainers({})
    const running = containers.filter(({ state }) => state === CONTAINER_STATE.running).map(({ id }) => id)
    await each('container', running, (containerId) =>
      runtime.stopContainer({ containerId, timeout: graceSeconds }, { timeoutMs }),
    )
    const { items } = await runtime.listPodSandbox({})
    const ready = items.filter(({ state }) => state === SANDBOX_STATE.ready).map(({ id }) => id)
    await each('pod', ready, (podSandboxId) => runtime.stopPodSandbox({ podSandboxId }, { timeoutMs }))
  } catch (error) {
    log.error(error, 'What runs could not be listed')
  }
}

/** What a runtime takes besides. */
const ANSWER_SECONDS = 20
