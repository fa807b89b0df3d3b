import { ServiceAccounts } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const token = (spec: object): object => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec })

export const serviceAccount: KindCases = {
  kind: ServiceAccounts,
  valid: { metadata: { name: 'robot' }, secrets: [{ name: 'keys' }], imagePullSecrets: [{ name: 'pull' }] },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Robot' } },
    { why: 'the name has an underscore', set: { '/metadata/name': 'ro_bot' } },
    { why: 'the name is missing', set: { '/metadata/name': undefined } },
    { why: 'an annotation is none', set: { '/metadata/annotations': { 'a/b/c': 'x' } } },
    { why: 'secrets are names', set: { '/secrets': ['keys'] } },
    { why: 'mounting is text', set: { '/automountServiceAccountToken': 'yes' } },
    { why: 'a label is none', on: 'update', set: { '/metadata/labels': { a: 'b c' } } },
    { why: 'the name in the body is another', on: 'update', set: { '/metadata/name': 'other' } },
    { why: 'a token lives too short', on: 'create token', body: token({ expirationSeconds: 60 }) },
    { why: 'a token lives too long', on: 'create token', body: token({ expirationSeconds: 4_294_967_297 }) },
    {
      why: 'a token is bound to a service',
      on: 'create token',
      body: token({ boundObjectRef: { apiVersion: 'v1', kind: 'Service', name: 'a' } }),
    },
    {
      why: 'a token is bound to a pod that is not there',
      on: 'create token',
      body: token({ boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'nobody' } }),
    },
    {
      why: 'a token is bound to a secret that is not there',
      on: 'create token',
      body: token({ boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name: 'nobody' } }),
    },
  ],
}
