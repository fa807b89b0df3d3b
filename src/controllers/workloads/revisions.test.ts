import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { stringifyJson } from '#lib/json/json.ts'

import { dataText, revisionData } from './revisions.ts'

test('revisionData() encodes a template as Go does, for any key order', () => {
  const template = {
    spec: { containers: [{ name: 'c', image: 'i', command: ['sh', '-c', 'a && b'] }], dnsPolicy: 'ClusterFirst' },
    metadata: { labels: { b: '2', a: '1' } },
  } as unknown as PodTemplateSpec
  const data = revisionData(template)
  const written =
    String.raw`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":` +
    String.raw`[{"command":["sh","-c","a \u0026\u0026 b"],"image":"i","name":"c"}],"dnsPolicy":"ClusterFirst"}}}}`
  assert.equal(stringifyJson(data), written)
  assert.equal(dataText(data), written)
})
