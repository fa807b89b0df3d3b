import { FlowSchemas } from '#apis/flowcontrol/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const subject = (one: object): Changes => ({ '/spec/rules/0/subjects/0': one })
const account = (serviceAccount: object): Changes => subject({ kind: 'ServiceAccount', serviceAccount })
const resources = (name: string, value: unknown): Changes => ({ [`/spec/rules/0/resourceRules/0/${name}`]: value })
const urls = (name: string, value: unknown): Changes => ({ [`/spec/rules/0/nonResourceRules/0/${name}`]: value })

/** Upstream's own controller writes the status of a schema as soon as it is there. */
const anyVersion: Changes = { '/metadata/resourceVersion': undefined }

export const flowSchema: KindCases = {
  kind: FlowSchemas,
  valid: {
    metadata: { name: 'refused' },
    spec: {
      matchingPrecedence: 1000,
      priorityLevelConfiguration: { name: 'workload-low' },
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'Group', group: { name: 'dev' } }],
          resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], namespaces: ['default'] }],
          nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }],
        },
      ],
    },
  },
  refused: [
    { why: 'a negative precedence', set: { '/spec/matchingPrecedence': -1 } },
    { why: 'a precedence too high', set: { '/spec/matchingPrecedence': 10_001 } },
    { why: 'the precedence of another', set: { '/spec/matchingPrecedence': 1 } },
    {
      why: 'an unknown flow distinguisher',
      set: { '/spec/distinguisherMethod/type': 'ByName' },
      ...shownAs({ type: 'ByName' }),
    },
    { why: 'no priority level', set: { '/spec/priorityLevelConfiguration': {} } },
    { why: 'a priority level with a bad name', set: { '/spec/priorityLevelConfiguration/name': 'A_b' } },
    { why: 'no subjects', set: { '/spec/rules/0/subjects': [] } },
    { why: 'an unknown subject', set: subject({ kind: 'Robot' }) },
    { why: 'a subject without a kind', set: subject({}) },
    { why: 'a group without its name', set: subject({ kind: 'Group', group: { name: '' } }) },
    { why: 'an empty group', set: subject({ kind: 'Group' }) },
    {
      why: 'a group that is more',
      set: subject({
        kind: 'Group',
        group: { name: 'dev' },
        user: { name: 'jane' },
        serviceAccount: { name: 'a', namespace: 'b' },
      }),
    },
    { why: 'an empty user', set: subject({ kind: 'User' }) },
    { why: 'a user without its name', set: subject({ kind: 'User', user: {} }) },
    {
      why: 'a user that is a group',
      set: subject({ kind: 'User', user: { name: 'jane' }, group: { name: 'dev' } }),
    },
    { why: 'an empty service account', set: subject({ kind: 'ServiceAccount' }) },
    { why: 'an empty account', set: account({}) },
    { why: 'an account with bad names', set: account({ name: 'A_b', namespace: 'C_d' }) },
    {
      why: 'a rule without resources',
      set: { '/spec/rules/0': { subjects: [{ kind: 'Group', group: { name: 'dev' } }] } },
    },
    { why: 'no verbs', set: resources('verbs', []) },
    { why: 'all verbs and more', set: resources('verbs', ['*', 'get']) },
    { why: 'an unknown verb', set: resources('verbs', ['fetch']) },
    { why: 'no groups', set: resources('apiGroups', []) },
    { why: 'all groups and more', set: resources('apiGroups', ['*', 'apps']) },
    { why: 'no resources', set: resources('resources', []) },
    { why: 'all resources and more', set: resources('resources', ['*', 'pods']) },
    { why: 'no namespaces', set: resources('namespaces', []) },
    { why: 'all namespaces and more', set: resources('namespaces', ['*', 'default']) },
    { why: 'a namespace with a bad name', set: resources('namespaces', ['A_b']) },
    { why: 'no verbs for URLs', set: urls('verbs', []) },
    { why: 'an unknown verb for URLs', set: urls('verbs', ['fetch']) },
    { why: 'no URLs', set: urls('nonResourceURLs', []) },
    { why: 'all URLs and more', set: urls('nonResourceURLs', ['*', '/healthz']) },
    { why: 'bad URLs', set: urls('nonResourceURLs', ['', 'a', '/a b', '/a//b', '/a*', '/*/*']) },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    {
      why: 'the precedence becomes negative',
      on: 'update',
      set: { ...anyVersion, '/spec/matchingPrecedence': -1 },
    },
    { why: 'the subjects are removed', on: 'update', set: { ...anyVersion, '/spec/rules/0/subjects': [] } },
    {
      why: 'a repeated condition',
      on: 'update status',
      set: { ...anyVersion, '/status': { conditions: [{ type: 'Dangling' }, { type: 'Dangling' }] } },
    },
    {
      why: 'a condition without a type',
      on: 'update status',
      set: { ...anyVersion, '/status': { conditions: [{ status: 'True' }] } },
    },
    ...badMetadataUpdates,
  ],
}
