import assert from 'node:assert/strict'
import { test } from 'node:test'

import { runtimeSuite } from '#cri/runtime.suite.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { createSeededRandom } from '#lib/random.ts'

import { MemoryRuntime, type MemoryRuntimeOptions } from './memory-runtime.ts'

/** The behavior of commands with `trap`, which the runtime does not interpret. */
const IGNORES_TERM = { stopMs: Infinity }

runtimeSuite('in memory', async (run) => {
  const clock = createVirtualClock()
  const logs = new Map<string, string>()
  const runtime = new MemoryRuntime({
    clock,
    random: createSeededRandom(7),
    behavior: ({ command }) => (command.some((word) => word.startsWith('trap')) ? IGNORES_TERM : undefined),
    writeLog: (path, line) => logs.set(path, (logs.get(path) ?? '') + line),
  })
  await runtime.pullImage({ image: { image: 'busybox' } })
  await run({
    runtime,
    image: 'busybox',
    cgroupParent: '/suite',
    logDirectory: '/var/log/pods',
    readLog: async (path) => logs.get(path) ?? '',
    pass: (ms) => clock.advance(ms),
    hasEvents: true,
  })
})

function createRuntime(options: Partial<MemoryRuntimeOptions> = {}): MemoryRuntime {
  return new MemoryRuntime({ clock: createVirtualClock(), random: createSeededRandom(1), ...options })
}

test('a failed pull in the in-memory runtime has the registry’s error with containerd’s prefix', async () => {
  const runtime = createRuntime({
    pull: () => {
      throw new GrpcError('notFound', 'docker.io/library/absent:v1: not found')
    },
  })
  await assert.rejects(
    () => runtime.pullImage({ image: { image: 'absent:v1' } }),
    (error: GrpcError) =>
      error.code === 'notFound' &&
      error.message ===
        'failed to pull and unpack image "docker.io/library/absent:v1": docker.io/library/absent:v1: not found',
  )
})

test('two names of the same content are one image in the in-memory runtime', async () => {
  const runtime = createRuntime({ pull: () => ({ content: 'same' }) })
  const { imageRef } = await runtime.pullImage({ image: { image: 'a:v1' } })
  assert.equal((await runtime.pullImage({ image: { image: 'b:v1' } })).imageRef, imageRef)
  const { image } = await runtime.imageStatus({ image: { image: 'a:v1' } })
  assert.deepEqual(image?.repoTags, ['docker.io/library/a:v1', 'docker.io/library/b:v1'])
})

test('a container that a test ends in the in-memory runtime has the given exit code and reason', async () => {
  const runtime = createRuntime()
  await runtime.pullImage({ image: { image: 'server' } })
  const { podSandboxId } = await runtime.runPodSandbox({})
  const { containerId } = await runtime.createContainer({ podSandboxId, config: { image: { image: 'server' } } })
  await runtime.startContainer({ containerId })
  runtime.end(containerId, { exitCode: 137, reason: 'OOMKilled' })
  const { status } = await runtime.containerStatus({ containerId })
  assert.deepEqual([status?.exitCode, status?.reason], [137, 'OOMKilled'])
})
