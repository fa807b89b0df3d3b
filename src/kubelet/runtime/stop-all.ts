/**
 * Stops all containers and sandboxes of a runtime when the machine stops being a node. The pods remain in the API and
 * start again when it is a node again.
 */
import { CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Logger } from '#lib/log/log.ts'

/** Each container has `graceSeconds` to stop. Failures are logged and do not stop the others. */
export async function stopAll(runtime: Runtime, graceSeconds: number, log: Logger): Promise<void> {
  const timeoutMs = (graceSeconds + ANSWER_SECONDS) * 1000
  const each = async (what: string, ids: readonly string[], stop: (id: string) => Promise<unknown>): Promise<void> => {
    const failed = (error: unknown): void => log.error(error, 'Failed to stop container or pod sandbox', { what })
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
    log.error(error, 'Failed to list containers and pod sandboxes')
  }
}

/** Extra time for the runtime to answer. */
const ANSWER_SECONDS = 20
