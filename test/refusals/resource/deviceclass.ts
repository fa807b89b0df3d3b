import { DeviceClasses } from '#apis/resource/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const opaque = (members: object): Changes => ({
  '/spec/config': [{ opaque: { driver: 'gpu.example.com', parameters: {}, ...members } }],
})
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one)

export const deviceClass: KindCases = {
  kind: DeviceClasses,
  valid: {
    metadata: { name: 'refused.example.com' },
    spec: {
      selectors: [{ cel: { expression: 'true' } }],
      config: [{ opaque: { driver: 'gpu.example.com', parameters: { a: 1 } } }],
      extendedResourceName: 'example.com/gpu',
    },
  },
  refused: [
    { why: 'an empty selector', set: { '/spec/selectors': [{}] } },
    { why: 'a selector too long', set: { '/spec/selectors/0/cel/expression': 'x'.repeat(10_241) } },
    { why: 'too many selectors', set: { '/spec/selectors': times(33, { cel: { expression: 'true' } }) } },
    { why: 'a configuration without content', set: { '/spec/config': [{}] } },
    { why: 'a configuration of no driver', set: opaque({ driver: '' }) },
    { why: 'a configuration of a driver with a bad name', set: opaque({ driver: 'a_b' }) },
    { why: 'a configuration of a driver with a long name', set: opaque({ driver: 'a'.repeat(64) }) },
    { why: 'a configuration without parameters', set: opaque({ parameters: undefined }) },
    { why: 'a configuration whose parameters are a text', set: opaque({ parameters: 'x' }) },
    { why: 'a configuration too long', set: opaque({ parameters: { a: 'x'.repeat(10_241) } }) },
    {
      why: 'too many configurations',
      set: { '/spec/config': times(33, { opaque: { driver: 'a.b', parameters: {} } }) },
    },
    { why: 'an extended resource without a domain', set: { '/spec/extendedResourceName': 'gpu' } },
    { why: 'an extended resource of Kubernetes', set: { '/spec/extendedResourceName': 'kubernetes.io/gpu' } },
    { why: 'an extended resource with a space', set: { '/spec/extendedResourceName': 'a.b/c d' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'the selector becomes empty', on: 'update', set: { '/spec/selectors': [{}] } },
    { why: 'the driver is removed', on: 'update', set: opaque({ driver: '' }) },
    { why: 'the extended resource becomes bad', on: 'update', set: { '/spec/extendedResourceName': 'gpu' } },
    ...badMetadataUpdates,
  ],
}
