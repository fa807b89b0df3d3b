import { RuntimeClasses } from '#apis/node/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const tolerating = (...tolerations: readonly unknown[]): Changes => ({ '/scheduling/tolerations': tolerations })
const costing = (podFixed: object): Changes => ({ '/overhead/podFixed': podFixed })

export const runtimeClass: KindCases = {
  kind: RuntimeClasses,
  valid: {
    metadata: { name: 'refused-kata' },
    handler: 'kata',
    overhead: { podFixed: { cpu: '10m', memory: '1Mi' } },
    scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'a', operator: 'Exists' }] },
  },
  refused: [
    { why: 'no handler', set: { '/handler': undefined } },
    { why: 'a handler with capitals', set: { '/handler': 'Kata' } },
    { why: 'a handler with a dot', set: { '/handler': 'a.b' } },
    { why: 'a handler too long', set: { '/handler': 'a'.repeat(64) } },
    { why: 'an overhead with a bad name', set: costing({ 'x y': '1' }) },
    { why: 'an overhead with an unknown name', set: costing({ foo: '1' }) },
    { why: 'a negative overhead', set: costing({ cpu: '-1' }) },
    { why: 'an overhead of half a device', set: costing({ 'example.com/gpu': '500m' }) },
    { why: 'an overhead of huge pages alone', set: costing({ 'hugepages-2Mi': '2Mi' }) },
    { why: 'an overhead of one huge page and a half', set: costing({ 'hugepages-2Mi': '3Mi', cpu: '1' }) },
    { why: 'an overhead that is not a quantity', set: costing({ cpu: 'much' }) },
    { why: 'a node selector with a bad key', set: { '/scheduling/nodeSelector': { 'a b': 'c' } } },
    { why: 'a node selector with a bad value', set: { '/scheduling/nodeSelector': { a: '-' } } },
    { why: 'a toleration with a bad key', set: tolerating({ key: 'a b', operator: 'Exists' }) },
    { why: 'a toleration with a bad value', set: tolerating({ key: 'a', value: 'a b' }) },
    { why: 'a toleration with an unknown operator', set: tolerating({ key: 'a', operator: 'Like' }) },
    { why: 'a toleration whose operator is gated', set: tolerating({ key: 'a', operator: 'Lt', value: '1' }) },
    { why: 'a toleration of any value with a value', set: tolerating({ key: 'a', operator: 'Exists', value: 'b' }) },
    { why: 'a toleration without a key', set: tolerating({ operator: 'Equal', value: 'b' }) },
    { why: 'a toleration with an unknown effect', set: tolerating({ key: 'a', operator: 'Exists', effect: 'Maybe' }) },
    {
      why: 'a toleration that ends without eviction',
      set: tolerating({ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 3 }),
    },
    {
      why: 'a repeated toleration',
      set: tolerating({ key: 'a', operator: 'Exists' }, { key: 'a', operator: 'Exists' }),
      ...shownAs({ key: 'a', operator: 'Exists' }),
    },
    { why: 'a name with capitals', set: { '/metadata/name': 'Kata' } },
    { why: 'the handler changes', on: 'update', set: { '/handler': 'runc' } },
    { why: 'the handler is removed', on: 'update', set: { '/handler': '' } },
    { why: 'the handler becomes bad', on: 'update', set: { '/handler': 'X' } },
    { why: 'the overhead becomes negative', on: 'update', set: costing({ cpu: '-1' }) },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    ...badMetadataUpdates,
  ],
}
