import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { runtimeClass } from './runtimeclass.ts'

const { create, update, cells } = tryRules(runtimeClass)

const body = {
  metadata: { name: 'gvisor' },
  handler: 'runsc',
  overhead: { podFixed: { cpu: '100m' } },
  scheduling: {
    nodeSelector: { a: 'b' },
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
  },
}

test('a RuntimeClass has a handler, an overhead and scheduling rules', async () => {
  assert.deepEqual(await create(body).then(({ errors, warnings }) => [errors, warnings]), [[], []])
  const twice = [{ operator: 'Exists' }, { operator: 'Exists', tolerationSeconds: 3, effect: '' }]
  const table: readonly (readonly [string, unknown, readonly RegExp[]])[] = [
    ['handler', '', [/^handler: Required value$/]],
    ['handler', 'Run_sc', [/^handler: Invalid value: "Run_sc": a lowercase RFC 1123 label must consist/]],
    [
      'overhead.podFixed',
      { cpu: '-1' },
      [/^overhead\.limits\[cpu\]: Invalid value: "-1": must be greater than or equal to 0$/],
    ],
    [
      'overhead.podFixed',
      { gpu: '1' },
      [/^overhead\.limits\[gpu\]: Invalid value: "gpu": must be a standard resource/],
    ],
    ['scheduling.nodeSelector', { a: '-' }, [/^scheduling\.nodeSelector: Invalid value: "-": a valid label must be/]],
    [
      'scheduling.tolerations.0.effect',
      'NoSchedule',
      [/^scheduling\.tolerations\[0\]\.effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when/],
    ],
    [
      'scheduling.tolerations',
      twice,
      [/^scheduling\.tolerations\[1\]\.effect: Invalid value/, /^scheduling\.tolerations\[1\]: Duplicate value: \{/],
    ],
  ]
  for (const [path, value, patterns] of table) {
    const { errors } = await create(changed(body, path, value))
    for (const pattern of patterns)
      assert.ok(
        errors.some((error) => pattern.test(error)),
        `${path}: ${errors.join('\n')}`,
      )
  }
})

test('a RuntimeClass rejects updates of handler', async () => {
  assert.deepEqual((await update(changed(body, 'handler', 'kata'), body)).errors, [
    'handler: Invalid value: "kata": field is immutable',
  ])
})

test('a RuntimeClass warns of deprecated node labels', async () => {
  const { warnings } = await create(changed(body, 'scheduling.nodeSelector', { 'beta.kubernetes.io/os': 'linux' }))
  assert.deepEqual(warnings, ['scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'])
})

test('a RuntimeClass prints its handler', () => {
  assert.deepEqual(cells(body), ['gvisor', 'runsc', '<unknown>'])
  assert.equal(runtimeClass.putCreates, true)
  assert.equal(runtimeClass.putNeedsVersion, true)
})
