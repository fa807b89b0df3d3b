import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ConfigMap, Pod } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createPodObjects, type PodObjects } from './object-cache.ts'

interface Watch {
  readonly path: string
  readonly selector: string
  say(type: string, object: object): void
  readonly isOver: () => boolean
}

interface Bed {
  readonly clock: VirtualClock
  readonly objects: PodObjects
  readonly watches: Watch[]
  readonly fault: { isDown: boolean }
}

/** A server that only supports watches and sends the events that the test gives it. */
function bedOf(): Bed {
  const clock = createVirtualClock()
  const watches: Watch[] = []
  const fault = { isDown: false }
  const client = new ApiClient({
    clock,
    userAgent: 'kubelet',
    transport: {
      request: async ({ url, signal }) => {
        if (fault.isDown) throw new Error('connection refused')
        const { pathname, searchParams } = new URL(url)
        const lines: Buffer[] = []
        let wake = (): void => undefined
        const end = new AbortController()
        signal?.addEventListener('abort', () => {
          end.abort()
          wake()
        })
        watches.push({
          path: pathname,
          selector: searchParams.get('fieldSelector') ?? '',
          say(type, object) {
            lines.push(Buffer.from(`${JSON.stringify({ type, object })}\n`))
            wake()
          },
          isOver: () => end.signal.aborted,
        })
        return {
          status: 200,
          headers: {},
          version: '1.1',
          body: (async function* () {
            while (!end.signal.aborted) {
              const line = lines.shift()
              if (line !== undefined) yield line
              else await new Promise<void>((resolve) => (wake = resolve))
            }
          })(),
          bytes: async () => Buffer.alloc(0),
          text: async () => '',
          discard: () => undefined,
        }
      },
    },
  })
  const { signal } = new AbortController()
  return { clock, watches, fault, objects: createPodObjects({ client, random: createSeededRandom(1), signal }) }
}

const podOf = (uid: string): Pod =>
  ({ metadata: { namespace: 'ns', name: uid, uid }, spec: { containers: [] } }) as unknown as Pod

const configMap = (text: string, more: object = {}): ConfigMap => ({
  metadata: { namespace: 'ns', name: 'cm', resourceVersion: '5' },
  data: { a: text },
  ...more,
})

const END = {
  kind: 'ConfigMap',
  metadata: { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } },
}

test('the kubelet watches an object once for all pods that refer to it, and only while they do', async () => {
  const { clock, objects, watches } = bedOf()
  const requested = Promise.all([objects.configMap(podOf('u1'), 'cm'), objects.configMap(podOf('u2'), 'cm')])
  await clock.advance(0)
  const [watch] = watches
  assert.deepEqual(
    [watches.length, watch?.path, watch?.selector],
    [1, '/api/v1/namespaces/ns/configmaps', 'metadata.name=cm'],
  )
  watch?.say('ADDED', configMap('1'))
  watch?.say('BOOKMARK', END)
  await clock.advance(0)
  assert.deepEqual(
    (await requested).map((found) => found?.data),
    [{ a: '1' }, { a: '1' }],
  )
  watch?.say('MODIFIED', configMap('2'))
  await clock.advance(0)
  assert.deepEqual((await objects.configMap(podOf('u1'), 'cm'))?.data, { a: '2' })
  watch?.say('DELETED', configMap('2'))
  await clock.advance(0)
  assert.equal(await objects.configMap(podOf('u1'), 'cm'), undefined)
  objects.forget('u1')
  assert.equal(watch?.isOver(), false)
  objects.forget('u2')
  assert.equal(watch?.isOver(), true)
})

test('a read of a ConfigMap or Secret fails after one second if the server does not respond', async () => {
  const { clock, objects, watches, fault } = bedOf()
  fault.isDown = true
  const requested = assert.rejects(objects.secret(podOf('u1'), 's'), {
    message: 'failed to sync secret cache: timed out waiting for the condition',
  })
  await clock.advance(1000)
  await requested
  fault.isDown = false
  await clock.advance(60_000)
  watches.at(-1)?.say('BOOKMARK', END)
  await clock.advance(0)
  assert.equal(await objects.secret(podOf('u1'), 's'), undefined)
})

test('the kubelet does not watch immutable and unused ConfigMaps and Secrets', async () => {
  const { clock, objects, watches } = bedOf()
  const requested = objects.configMap(podOf('u1'), 'cm')
  await clock.advance(0)
  watches[0]?.say('ADDED', configMap('1', { immutable: true }))
  watches[0]?.say('BOOKMARK', END)
  await clock.advance(0)
  assert.deepEqual((await requested)?.data, { a: '1' })
  assert.equal(watches[0]?.isOver(), true)
  assert.deepEqual((await objects.configMap(podOf('u1'), 'cm'))?.data, { a: '1' })
  const other = objects.configMap(podOf('u1'), 'idle')
  await clock.advance(0)
  watches[1]?.say('BOOKMARK', END)
  await clock.advance(0)
  assert.equal(await other, undefined)
  await clock.advance(400_000)
  const third = objects.configMap(podOf('u1'), 'third').catch(() => undefined)
  await clock.advance(2000)
  await third
  assert.equal(watches[1]?.isOver(), true)
})
