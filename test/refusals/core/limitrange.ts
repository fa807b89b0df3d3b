import { LimitRanges } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const LIMIT = '/spec/limits/0'

export const limitRange: KindCases = {
  kind: LimitRanges,
  valid: {
    metadata: { name: 'limits' },
    spec: {
      limits: [
        {
          type: 'Container',
          min: { cpu: '100m' },
          max: { cpu: '2' },
          default: { cpu: '1' },
          defaultRequest: { cpu: '200m' },
          maxLimitRequestRatio: { cpu: '10' },
        },
        { type: 'PersistentVolumeClaim', min: { storage: '1Gi' } },
      ],
    },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Limits' } },
    { why: 'two limits are of one type', set: { '/spec/limits/1/type': 'Container' } },
    { why: 'a type has a space', set: { [`${LIMIT}/type`]: 'My Type' } },
    { why: 'the least is more than the most', set: { [`${LIMIT}/min/cpu`]: '3' } },
    { why: 'the default is more than the most', set: { [`${LIMIT}/default/cpu`]: '3' } },
    { why: 'the default request is less than the least', set: { [`${LIMIT}/defaultRequest/cpu`]: '50m' } },
    { why: 'the default request is more than the default', set: { [`${LIMIT}/defaultRequest/cpu`]: '1500m' } },
    { why: 'the ratio is less than one', set: { [`${LIMIT}/maxLimitRequestRatio/cpu`]: '500m' } },
    { why: 'the ratio is more than the limits allow', set: { [`${LIMIT}/maxLimitRequestRatio/cpu`]: '21' } },
    { why: 'a pod has defaults', set: { [`${LIMIT}/type`]: 'Pod' } },
    { why: 'a claim limit without storage', set: { '/spec/limits/1/min': { cpu: '1' } } },
    { why: 'a resource is unknown', set: { [`${LIMIT}/max/gpu`]: '1' } },
    { why: 'a quantity is none', set: { [`${LIMIT}/max/cpu`]: 'two' } },
    { why: 'limits that are missing or strings', set: { '/spec/limits': 'none' } },
    { why: 'the least grows above the most', on: 'update', set: { [`${LIMIT}/min/cpu`]: '3' } },
    { why: 'a type is doubled', on: 'update', set: { '/spec/limits/1/type': 'Container' } },
  ],
  taken: [
    { why: 'a least is negative', set: { [`${LIMIT}/min/cpu`]: '-1', [`${LIMIT}/maxLimitRequestRatio`]: undefined } },
  ],
}
