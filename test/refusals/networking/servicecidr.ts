import { ServiceCIDRs } from '#apis/networking/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const cidrs = (...ranges: readonly string[]): Changes => ({ '/spec/cidrs': ranges })

const [OWN, OTHER, THIRD, IPV6] = ['10.9.0.0/24', '10.8.0.0/24', '10.7.0.0/24', 'fd00::/64']

export const serviceCidr: KindCases = {
  kind: ServiceCIDRs,
  valid: { metadata: { name: 'refused' }, spec: { cidrs: [OWN] } },
  refused: [
    { why: 'no spec', set: { '/spec': {} } },
    { why: 'no ranges', set: cidrs() },
    {
      why: 'three ranges',
      set: cidrs(OWN, OTHER, THIRD),
      ...shownAs([OWN, OTHER, THIRD]),
    },
    { why: 'an invalid range', set: cidrs('x') },
    { why: 'a range without a length', set: cidrs('10.9.0.0') },
    { why: 'a range with an address in it', set: cidrs('10.9.0.1/24') },
    { why: 'a range with leading zeros', set: cidrs('010.9.0.0/24') },
    { why: 'a range that could be shorter', set: cidrs('2001:db8:0::/64') },
    { why: 'two ranges of one family', set: cidrs(OWN, OTHER) },
    { why: 'one good range and a bad one', set: cidrs(OWN, 'fd00::1/64') },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'another range', on: 'update', set: cidrs(OTHER) },
    { why: 'the range is removed', on: 'update', set: { '/spec/cidrs': undefined } },
    { why: 'one comes and the other changes', on: 'update', set: cidrs(OTHER, IPV6) },
    { why: 'one of the same family is added', on: 'update', set: cidrs(OWN, OTHER) },
    { why: 'a bad one is added', on: 'update', set: cidrs(OWN, 'x') },
    { why: 'two come', on: 'update', set: cidrs(OWN, IPV6, 'fd01::/64') },
    ...badMetadataUpdates,
  ],
}
