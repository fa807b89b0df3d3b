import { ResourceQuotas } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const scoped = (...scopes: object[]): object => ({ matchExpressions: scopes })

export const resourceQuota: KindCases = {
  kind: ResourceQuotas,
  valid: { metadata: { name: 'quota' }, spec: { hard: { pods: '10', 'requests.cpu': '4', 'count/jobs.batch': '2' } } },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Quota' } },
    { why: 'a resource has no name', set: { '/spec/hard/a b': '1' } },
    { why: 'a resource is unknown', set: { '/spec/hard/gpu': '1' } },
    { why: 'a quota is negative', set: { '/spec/hard/pods': '-1' } },
    { why: 'a quota of pods is a fraction', set: { '/spec/hard/pods': '1500m' } },
    { why: 'a quota is not a quantity', set: { '/spec/hard/pods': 'many' } },
    { why: 'a scope is unknown', set: { '/spec/scopes': ['Odd'] } },
    {
      why: 'two scopes exclude each other',
      set: { '/spec/hard': { pods: '1' }, '/spec/scopes': ['BestEffort', 'NotBestEffort'] },
    },
    {
      why: 'two scopes of time exclude each other',
      set: { '/spec/hard': { pods: '1' }, '/spec/scopes': ['Terminating', 'NotTerminating'] },
    },
    {
      why: 'a scope does not fit the resource',
      set: { '/spec/hard': { services: '1' }, '/spec/scopes': ['BestEffort'] },
    },
    {
      why: 'a selector names no scope',
      set: { '/spec/scopeSelector': scoped({ scopeName: 'Odd', operator: 'Exists' }) },
    },
    {
      why: 'a selector has no values',
      set: {
        '/spec/hard': { pods: '1' },
        '/spec/scopeSelector': scoped({ scopeName: 'PriorityClass', operator: 'In' }),
      },
    },
    {
      why: 'a selector has values where none belong',
      set: {
        '/spec/hard': { pods: '1' },
        '/spec/scopeSelector': scoped({ scopeName: 'PriorityClass', operator: 'Exists', values: ['a'] }),
      },
    },
    {
      why: 'a selector operator is unknown',
      set: {
        '/spec/hard': { pods: '1' },
        '/spec/scopeSelector': scoped({ scopeName: 'PriorityClass', operator: 'Like', values: ['a'] }),
      },
    },
    {
      why: 'a scope with operator Exists is required',
      set: {
        '/spec/hard': { pods: '1' },
        '/spec/scopeSelector': scoped({ scopeName: 'BestEffort', operator: 'In', values: ['a'] }),
      },
    },
    { why: 'the scopes change', on: 'update', set: { '/spec/scopes': ['NotBestEffort'] } },
    { why: 'a quota becomes negative', on: 'update', set: { '/spec/hard/pods': '-1' } },
    {
      why: 'the status has a negative use',
      on: 'update status',
      set: { '/status': { hard: { pods: '1' }, used: { pods: '-1' } } },
    },
  ],
  taken: [
    {
      why: 'the scope selector changes',
      on: 'update',
      stored: {
        '/spec/hard': { pods: '1' },
        '/spec/scopeSelector': scoped({ scopeName: 'PriorityClass', operator: 'Exists' }),
      },
      set: { '/spec/scopeSelector': undefined },
    },
  ],
}
