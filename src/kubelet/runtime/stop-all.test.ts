import assert from 'node:assert/strict'
import { test } from 'node:test'

import { CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'
import { MemoryRuntime } from '#kits/cri/memory-runtime.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import { stopAll } from './stop-all.ts'

test('stopAll() stops all containers, logs failures, and keeps the sandboxes', async () => {
  const clock = createVirtualClock()
  const runtime = new MemoryRuntime({ clock, random: createSeededRandom(1) })
  await runtime.pullImage({ image: { image: 'server' } })
  const ids: string[] = []
  for (const name of ['a', 'b']) {
    const { podSandboxId } = await runtime.runPodSandbox({ config: { metadata: { name, uid: name } } })
    const { containerId } = await runtime.createContainer({ podSandboxId, config: { image: { image: 'server' } } })
    await runtime.startContainer({ containerId })
    ids.push(containerId)
  }
  const logged: unknown[] = []
  const log = { error: (error: unknown) => logged.push(error) } as unknown as Logger
  const stubborn: MemoryRuntime = Object.create(runtime, {
    stopContainer: {
      value: (request: { containerId: string; timeout: number }) =>
        request.containerId === ids[0] ? Promise.reject(new Error('busy')) : runtime.stopContainer(request),
    },
  })
  const stopping = stopAll(stubborn, 5, log)
  await clock.advance(10_000)
  await stopping
  assert.deepEqual(logged, [new Error('busy')])
  const { containers } = await runtime.listContainers({})
  assert.deepEqual(
    containers.map(({ state }) => state),
    [CONTAINER_STATE.exited, CONTAINER_STATE.exited],
  )
  const { items } = await runtime.listPodSandbox({})
  assert.deepEqual(
    items.map(({ state }) => state),
    [SANDBOX_STATE.notReady, SANDBOX_STATE.notReady],
  )
})
