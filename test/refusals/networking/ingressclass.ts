import { IngressClasses } from '#apis/networking/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

export const ingressClass: KindCases = {
  kind: IngressClasses,
  valid: {
    metadata: { name: 'refused' },
    spec: {
      controller: 'example.com/ctl',
      parameters: {
        apiGroup: 'k8s.example.com',
        kind: 'Params',
        name: 'p',
        scope: 'Namespace',
        namespace: 'default',
      },
    },
  },
  refused: [
    { why: 'no controller', set: { '/spec/controller': '' } },
    { why: 'a controller without a path', set: { '/spec/controller': 'example.com' } },
    { why: 'a controller with an empty path', set: { '/spec/controller': 'example.com/' } },
    { why: 'a controller with a bad path', set: { '/spec/controller': 'example.com/a b' } },
    { why: 'a controller with a bad domain', set: { '/spec/controller': 'A_b/c' } },
    { why: 'a controller too long', set: { '/spec/controller': `a.b/${'c'.repeat(250)}` } },
    { why: 'empty parameters', set: { '/spec/parameters': {} } },
    { why: 'parameters of a bad group', set: { '/spec/parameters/apiGroup': 'A_b' } },
    { why: 'parameters without a kind', set: { '/spec/parameters/kind': '' } },
    { why: 'parameters of a kind that is a path', set: { '/spec/parameters/kind': 'a/b' } },
    { why: 'parameters without a name', set: { '/spec/parameters/name': '' } },
    { why: 'parameters named as the parent folder', set: { '/spec/parameters/name': '..' } },
    { why: 'parameters of an unknown scope', set: { '/spec/parameters/scope': 'Galaxy' } },
    { why: 'parameters without their namespace', set: { '/spec/parameters/namespace': undefined } },
    { why: 'parameters in a bad namespace', set: { '/spec/parameters/namespace': 'A_b' } },
    { why: 'parameters of the cluster in a namespace', set: { '/spec/parameters/scope': 'Cluster' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'the controller changes', on: 'update', set: { '/spec/controller': 'example.com/other' } },
    { why: 'the controller becomes bad', on: 'update', set: { '/spec/controller': 'x' } },
    { why: 'the scope becomes invalid', on: 'update', set: { '/spec/parameters/scope': 'Galaxy' } },
    ...badMetadataUpdates,
  ],
}
