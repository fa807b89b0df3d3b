import { VolumeAttributesClasses } from '#apis/storage/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

export const volumeAttributesClass: KindCases = {
  kind: VolumeAttributesClasses,
  valid: { metadata: { name: 'refused' }, driverName: 'disk.example.com', parameters: { iops: '100' } },
  refused: [
    { why: 'no driver', set: { '/driverName': '' } },
    { why: 'a driver with a space', set: { '/driverName': 'a b' } },
    { why: 'no parameters', set: { '/parameters': {} } },
    { why: 'missing parameters', set: { '/parameters': undefined } },
    { why: 'a parameter without a name', set: { '/parameters': { '': 'x' } } },
    { why: 'parameters too large', set: { '/parameters': { a: 'x'.repeat(256 * 1024) } } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'another driver', on: 'update', set: { '/driverName': 'other' } },
    { why: 'other parameters', on: 'update', set: { '/parameters/iops': '200' } },
    { why: 'everything is removed', on: 'update', set: { '/driverName': '', '/parameters': {} } },
    ...badMetadataUpdates,
  ],
}
