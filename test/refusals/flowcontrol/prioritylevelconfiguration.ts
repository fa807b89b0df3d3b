import { PriorityLevelConfigurations } from '#apis/flowcontrol/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const limited = (name: string, value: unknown): Changes => ({ [`/spec/limited/${name}`]: value })
const queuing = (name: string, value: unknown): Changes => limited(`limitResponse/queuing/${name}`, value)

const spec = {
  type: 'Limited',
  limited: {
    nominalConcurrencyShares: 10,
    limitResponse: { type: 'Queue', queuing: { queues: 16, handSize: 4, queueLengthLimit: 50 } },
    lendablePercent: 10,
  },
}

export const priorityLevelConfiguration: KindCases = {
  kind: PriorityLevelConfigurations,
  valid: { metadata: { name: 'refused' }, spec },
  refused: [
    { why: 'no type', set: { '/spec/type': '' } },
    { why: 'an unknown type', set: { '/spec/type': 'Odd' } },
    { why: 'the type of another', set: { '/spec': { type: 'Exempt' } } },
    { why: 'exempt and limited', set: { '/spec/type': 'Exempt' } },
    { why: 'limited and exempt', set: { '/spec/exempt': { lendablePercent: 0 } } },
    { why: 'no limits', set: { '/spec/limited': undefined } },
    { why: 'negative shares', set: limited('nominalConcurrencyShares', -1) },
    { why: 'negative lending', set: limited('lendablePercent', -1) },
    { why: 'lending too much', set: limited('lendablePercent', 101) },
    { why: 'negative borrowing', set: limited('borrowingLimitPercent', -1) },
    { why: 'no response type', set: limited('limitResponse/type', '') },
    { why: 'an unknown response type', set: limited('limitResponse/type', 'Odd') },
    { why: 'rejecting and queuing', set: limited('limitResponse/type', 'Reject') },
    { why: 'queuing without queues', set: limited('limitResponse', { type: 'Queue' }) },
    { why: 'a negative queue length', set: queuing('queueLengthLimit', -1) },
    { why: 'negative queues', set: queuing('queues', -1) },
    { why: 'too many queues', set: queuing('queues', 10_000_001) },
    { why: 'a negative hand', set: queuing('handSize', -1) },
    { why: 'a hand larger than the deck', set: queuing('handSize', 17) },
    { why: 'a hand that takes too many bits', set: { ...queuing('queues', 1024), ...queuing('handSize', 10) } },
    {
      why: 'an annotation of another version',
      set: { '/metadata/annotations': { 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares': '' } },
    },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    {
      why: 'the name of the exempt level',
      set: { '/metadata/name': 'exempt' },
      ...shownAs(spec),
    },
    { why: 'the type changes', on: 'update', set: { '/spec/type': 'Odd' } },
    { why: 'the shares become negative', on: 'update', set: limited('nominalConcurrencyShares', -1) },
    {
      why: 'a repeated condition',
      on: 'update status',
      set: { '/status': { conditions: [{ type: 'A' }, { type: 'A' }] } },
    },
    {
      why: 'a condition without a type',
      on: 'update status',
      set: { '/status': { conditions: [{ status: 'True' }] } },
    },
    ...badMetadataUpdates,
  ],
}
