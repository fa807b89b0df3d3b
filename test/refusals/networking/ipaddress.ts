import { IPAddresses } from '#apis/networking/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

export const ipAddress: KindCases = {
  kind: IPAddresses,
  valid: {
    metadata: { name: '10.9.0.1' },
    spec: { parentRef: { resource: 'services', name: 'x', namespace: 'default' } },
  },
  refused: [
    { why: 'a name that is not an address', set: { '/metadata/name': 'web' } },
    { why: 'an address with leading zeros', set: { '/metadata/name': '010.0.0.1' } },
    { why: 'an address that could be shorter', set: { '/metadata/name': '2001:db8:0::1' } },
    { why: 'an IPv4 address in IPv6 form', set: { '/metadata/name': '::ffff:1.2.3.4' } },
    { why: 'no spec', set: { '/spec': undefined } },
    { why: 'no parent', set: { '/spec/parentRef': undefined } },
    { why: 'an empty parent', set: { '/spec/parentRef': {} } },
    { why: 'a parent without a resource', set: { '/spec/parentRef/resource': '' } },
    { why: 'a parent without a name', set: { '/spec/parentRef/name': undefined } },
    { why: 'a parent of a bad group', set: { '/spec/parentRef/group': 'A_b' } },
    { why: 'a parent of a resource that is a path', set: { '/spec/parentRef/resource': 'a/b' } },
    { why: 'a parent whose name has a percent sign', set: { '/spec/parentRef/name': 'a%b' } },
    { why: 'a parent in the parent folder', set: { '/spec/parentRef/namespace': '..' } },
    {
      why: 'another parent',
      on: 'update',
      set: { '/spec/parentRef/name': 'y' },
      ...shownAs({ resource: 'services', namespace: 'default', name: 'y' }),
    },
    { why: 'the parent is removed', on: 'update', set: { '/spec/parentRef': undefined } },
    ...badMetadataUpdates,
  ],
}
