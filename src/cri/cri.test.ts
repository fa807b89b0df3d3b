import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { ContainerEventResponse } from '#apis/wire/cri.ts'
import { serveRuntime } from '#kits/cri/server.ts'
import { realClock } from '#lib/clock.ts'
import { createGrpcClient } from '#lib/grpc/client.ts'
import { createGrpcServer } from '#lib/grpc/server.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { secureRandom } from '#lib/random.ts'

import { createRuntimeClient } from './client.ts'
import type { Runtime } from './runtime.ts'

async function connected(parts: Partial<Runtime>, use: (runtime: Runtime) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'hyperkube-cri-'))
  const path = join(dir, 'cri.sock')
  const server = createGrpcServer({ handlers: serveRuntime(parts as Runtime), clock: realClock })
  await server.listen({ path })
  const client = createGrpcClient({ targets: [{ path }], clock: realClock, random: secureRandom })
  try {
    await use(createRuntimeClient(client))
  } finally {
    client.close()
    await server.stop()
    await rm(dir, { recursive: true })
  }
}

test('CRI requests and responses arrive complete, including maps and nested messages', async () => {
  const labels = new Map([['io.kubernetes.pod.uid', 'u1']])
  await connected(
    {
      runPodSandbox: ({ config }) =>
        Promise.resolve({ podSandboxId: `${config?.metadata?.name}-${config?.linux?.resources?.cpuShares}` }),
      listPodSandbox: ({ filter }) =>
        Promise.resolve({
          items: [
            {
              id: 's1',
              metadata: { name: 'p', uid: 'u1', namespace: 'default', attempt: 2 },
              state: 1,
              createdAt: 1_800_000_000_123_456_789n,
              labels: new Map(filter?.labelSelector),
              annotations: new Map(),
              runtimeHandler: '',
            },
          ],
        }),
    },
    async (runtime) => {
      const config = { metadata: { name: 'web' }, linux: { resources: { cpuShares: 102 } } }
      assert.deepEqual(await runtime.runPodSandbox({ config }), { podSandboxId: 'web-102' })
      const { items } = await runtime.listPodSandbox({ filter: { labelSelector: labels } })
      assert.deepEqual(items[0]?.labels, labels)
      assert.equal(items[0]?.createdAt, 1_800_000_000_123_456_789n)
      assert.equal(items[0]?.metadata?.attempt, 2)
    },
  )
})

test('a failed CRI call throws an error with the code and message of the runtime', async () => {
  await connected(
    { startContainer: () => Promise.reject(new GrpcError('notFound', 'an error occurred: not found')) },
    async (runtime) => {
      await assert.rejects(
        () => runtime.startContainer({ containerId: 'c1' }),
        (error: GrpcError) => error.code === 'notFound' && error.message.includes('an error occurred: not found'),
      )
    },
  )
})

test('the stream of CRI container events yields one event at a time', async () => {
  const event = (containerId: string): ContainerEventResponse => ({
    containerId,
    containerEventType: 2,
    createdAt: 1,
    podSandboxStatus: undefined,
    containersStatuses: [],
  })
  await connected(
    {
      getContainerEvents: async function* () {
        yield event('a')
        yield event('b')
      },
    },
    async (runtime) => {
      const seen: string[] = []
      for await (const { containerId } of runtime.getContainerEvents({})) seen.push(containerId)
      assert.deepEqual(seen, ['a', 'b'])
    },
  )
})
