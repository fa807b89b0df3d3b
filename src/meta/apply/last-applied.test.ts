import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleKind } from '#kits/meta/example-kind.ts'

import type { KubeObject } from '../object.ts'
import { applyConfig, type ApplyResult, trackUpdate } from './field-manager.ts'

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration'

function widget(spec: object, annotations?: Record<string, string>): KubeObject {
  return {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { ...(annotations && { annotations }) },
    spec,
  } as KubeObject
}

/** An object from client-side `kubectl apply`: `lastApplied` is in the annotation. */
function clientSide(spec: object, lastApplied: object | string): KubeObject {
  const text = typeof lastApplied === 'string' ? lastApplied : JSON.stringify(widget(lastApplied))
  const created = trackUpdate(
    { ...request, live: undefined, manager: 'kubectl-client-side-apply' },
    widget(spec, { [ANNOTATION]: text }),
  )
  return { ...created, metadata: { ...created.metadata, uid: 'u' } }
}

const request = { kind: exampleKind, subresource: '', nowMs: 0 } as const

function apply(live: KubeObject, config: KubeObject, manager = 'kubectl', force = false): ApplyResult {
  return applyConfig({ ...request, live, manager }, config, force)
}

describe('last-applied annotation', () => {
  it('makes a server-side apply by kubectl take over fields of client-side apply', () => {
    const result = apply(clientSide({ image: 'a' }, { image: 'a' }), widget({ image: 'b' }))
    assert.ok(result.ok)
    assert.equal((result.object as KubeObject & { spec: { image: string } }).spec.image, 'b')
  })

  it('is updated by a server-side apply, with sorted keys and without itself', () => {
    const config = widget({ paused: true, image: 'a<b' }, { [ANNOTATION]: 'x', other: 'y' })
    const result = apply(clientSide({ image: 'a' }, { image: 'a' }), config, 'kubectl', true)
    assert.ok(result.ok)
    assert.equal(
      result.object.metadata.annotations?.[ANNOTATION],
      '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"other":"y"}},"spec":{"image":"a\\u003cb","paused":true}}\n',
    )
  })

  it('is removed if annotations would be too large', () => {
    const result = apply(clientSide({ image: 'a' }, { image: 'a' }), widget({ image: 'x'.repeat(300_000) }))
    assert.ok(result.ok)
    assert.equal(result.object.metadata.annotations?.[ANNOTATION], undefined)
  })

  const STRICT: readonly [why: string, live: KubeObject, manager?: string][] = [
    ['another manager applies', clientSide({ image: 'a' }, { image: 'a' }), 'argo'],
    ['the field changed since', clientSide({ image: 'a' }, { image: 'old' })],
    ['it does not mention the field', clientSide({ image: 'a' }, {})],
    [
      'it is of another version',
      clientSide({ image: 'a' }, JSON.stringify({ ...widget({ image: 'a' }), apiVersion: 'example.com/v2' })),
    ],
    ['it does not fit the schema', clientSide({ image: 'a' }, { image: 'a', zork: 1 })],
    ['it is broken', clientSide({ image: 'a' }, '{')],
    ['it is empty', clientSide({ image: 'a' }, '')],
  ]
  for (const [why, live, manager] of STRICT) {
    it(`is ignored when ${why}`, () => {
      const result = apply(live, widget({ image: 'b' }), manager)
      assert.ok(!result.ok)
      assert.equal(result.causes.length, 1)
    })
  }

  it('does not resolve conflicts about fields that it does not contain', () => {
    const result = apply(
      clientSide({ image: 'a', paused: true }, { image: 'a' }),
      widget({ image: 'b', paused: false }),
    )
    assert.ok(!result.ok)
    assert.deepEqual(
      result.causes.map(({ field }) => field),
      ['.spec.paused'],
    )
  })
})
