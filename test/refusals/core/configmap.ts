import { ConfigMaps } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

export const configMap: KindCases = {
  kind: ConfigMaps,
  valid: { metadata: { name: 'settings' }, data: { colour: 'blue' }, binaryData: { logo: 'AAEC' } },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Settings' } },
    { why: 'the name is missing', set: { '/metadata/name': undefined } },
    { why: 'a key has a space', set: { '/data/my colour': 'blue' } },
    { why: 'a key climbs out of the directory', set: { '/data/..~1up': 'x' } },
    { why: 'one key is both text and binary', set: { '/data/logo': 'x' } },
    { why: 'a value is a number', set: { '/data/colour': 7 } },
    { why: 'binary data is not valid base64', set: { '/binaryData/logo': '***' } },
    { why: 'more than a megabyte', set: { '/data/colour': 'x'.repeat(1_048_577) } },
    { why: 'a label value has a slash', set: { '/metadata/labels': { team: 'a/b' } } },
    {
      why: 'immutable data changes',
      on: 'update',
      stored: { '/immutable': true },
      set: { '/data/colour': 'red' },
    },
    { why: 'immutable becomes mutable', on: 'update', stored: { '/immutable': true }, set: { '/immutable': false } },
    { why: 'the name in the body is another', on: 'update', set: { '/metadata/name': 'other' } },
    { why: 'the object was changed meanwhile', on: 'update', set: { '/metadata/resourceVersion': '1' } },
  ],
}
