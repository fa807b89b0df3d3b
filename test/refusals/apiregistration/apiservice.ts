import { APIServices } from '#apis/apiregistration/v1.ts'

import type { KindCases } from '../case.ts'

export const apiService: KindCases = {
  kind: APIServices,
  valid: {
    metadata: { name: 'v1.aggregated.test' },
    spec: {
      group: 'aggregated.test',
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 10,
      service: { namespace: 'default', name: 'api' },
      insecureSkipTLSVerify: true,
    },
  },
  refused: [
    { why: 'the name is another', set: { '/metadata/name': 'v2.aggregated.test' } },
    {
      why: 'the group has capitals',
      set: { '/metadata/name': 'v1.Aggregated.test', '/spec/group': 'Aggregated.test' },
    },
    { why: 'the version is missing', set: { '/spec/version': '' } },
    { why: 'the version has a dot', set: { '/metadata/name': 'v1.1.aggregated.test', '/spec/version': 'v1.1' } },
    { why: 'the priorities are missing', set: { '/spec/groupPriorityMinimum': 0, '/spec/versionPriority': 0 } },
    {
      why: 'the priorities are too high',
      set: { '/spec/groupPriorityMinimum': 20_001, '/spec/versionPriority': 1001 },
    },
    { why: 'the service has no name', set: { '/spec/service': { namespace: '', name: '' } } },
    { why: 'the service has a bad port', set: { '/spec/service/port': 70_000 } },
    { why: 'a local one has certificates', set: { '/spec/service': undefined, '/spec/caBundle': 'AAEC' } },
    { why: 'a local one is insecure', set: { '/spec/service': undefined } },
    { why: 'it is secure and insecure', set: { '/spec/caBundle': 'AAEC' } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'the version changes', on: 'update', set: { '/spec/version': 'v2' } },
    { why: 'the priority is removed', on: 'update', set: { '/spec/versionPriority': 0 } },
    { why: 'the service loses its name', on: 'update', set: { '/spec/service/name': '' } },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    {
      why: 'the status has an unknown condition',
      on: 'update status',
      set: { '/status/conditions': [{ type: 'Available', status: 'Odd' }] },
    },
  ],
  taken: [
    { why: 'the certificates are none', set: { '/spec/insecureSkipTLSVerify': undefined, '/spec/caBundle': 'AAEC' } },
  ],
}
