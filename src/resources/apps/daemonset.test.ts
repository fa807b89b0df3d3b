import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { daemonSet } from './daemonset.ts'

const { create, update, read, cells } = tryRules(daemonSet)

const GENERATION = 'deprecated.daemonset.template.generation'

const body = {
  metadata: { name: 'agent', namespace: 'ns', generation: 2, annotations: { [GENERATION]: '4' } },
  spec: {
    selector: { matchLabels: { app: 'agent' } },
    template: {
      metadata: { labels: { app: 'agent' } },
      spec: { containers: [{ name: 'c', image: 'i:1' }], nodeSelector: { disk: 'ssd' } },
    },
  },
}

test('a DaemonSet replaces one pod at a time by default', () => {
  const { spec } = read(body)
  assert.deepEqual(spec.updateStrategy, { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } })
  assert.equal(spec.revisionHistoryLimit, 10)
})

test('a DaemonSet allows either maxSurge or maxUnavailable', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const roll = (maxUnavailable: unknown, maxSurge: unknown): object => ({ rollingUpdate: { maxUnavailable, maxSurge } })
  const field = 'spec.updateStrategy.rollingUpdate'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.updateStrategy', roll(0, '0%'), [`${field}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0`]],
    [
      'spec.updateStrategy',
      roll(1, 2),
      [`${field}.maxSurge: Invalid value: 2: may not be set when maxUnavailable is non-zero`],
    ],
    [
      'spec.updateStrategy',
      roll(0, '120%'),
      [`${field}.maxSurge: Invalid value: "120%": must not be greater than 100%`],
    ],
    [
      'spec.updateStrategy',
      { type: 'Never' },
      ['spec.updateStrategy: Unsupported value: {"type":"Never"}: supported values: "RollingUpdate", "OnDelete"'],
    ],
    ['spec.selector', {}, ['spec.selector: Invalid value: {}: empty selector is invalid for daemonset']],
    [
      'spec.template.spec.restartPolicy',
      'OnFailure',
      ['spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
    ],
    [
      'spec.template.spec.activeDeadlineSeconds',
      5,
      ['spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported'],
    ],
    ['spec.minReadySeconds', -1, ['spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, JSON.stringify(value))
  }
})

test('a DaemonSet has an annotation with the number of template changes', async () => {
  const generationOf = ({ metadata }: { metadata: { annotations?: Record<string, string> } }): string | undefined =>
    metadata.annotations?.[GENERATION]
  assert.equal(generationOf((await create(changed(body, 'metadata.annotations', undefined))).object), '1')
  assert.equal(generationOf((await create(body)).object), '4')
  const rolled = changed(changed(body, 'spec.template.spec.hostNetwork', true), 'metadata.annotations', undefined)
  assert.equal(generationOf((await update(rolled, body)).object), '5')
  const { object } = await update(changed(body, 'spec.minReadySeconds', 3), body)
  assert.deepEqual([generationOf(object), object.metadata.generation], ['4', 3])
  const bare = changed(body, 'metadata.annotations', undefined)
  assert.equal(generationOf((await update(bare, body, 'status')).object), '4')
  assert.throws(() => read(changed(body, 'metadata.annotations', { [GENERATION]: 'x' })), /as int64/)
})

test('a DaemonSet rejects a changed selector and negative counts in the status', async () => {
  assert.match(
    (await update(changed(body, 'spec.selector.matchLabels', { app: 'agent', a: 'b' }), body)).errors[0] ?? '',
    /^spec\.selector: Invalid value: .*: field is immutable$/,
  )
  const status = { numberReady: -1, collisionCount: 0 }
  assert.deepEqual((await update({ ...body, status }, { ...body, status: { collisionCount: 1 } }, 'status')).errors, [
    'status.numberReady: Invalid value: -1: must be greater than or equal to 0',
    'status.collisionCount: Invalid value: 0: cannot be decremented',
  ])
})

test('a DaemonSet prints its node counts', () => {
  const status = {
    desiredNumberScheduled: 5,
    currentNumberScheduled: 4,
    numberReady: 3,
    updatedNumberScheduled: 2,
    numberAvailable: 1,
  }
  const wide = ['c', 'i:1', 'app=agent']
  assert.deepEqual(cells({ ...body, status }), ['agent', 5, 4, 3, 2, 1, 'disk=ssd', '<unknown>', ...wide])
})
