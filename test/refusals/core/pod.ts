import { Nodes, Pods } from '#apis/core/v1.ts'

import { printing, differing, type KindCases, type Refusal } from '../case.ts'
import { containersTaken, podContainers } from './pod-containers.ts'
import { placementTaken, podPlacement } from './pod-placement.ts'
import { podVolumes, volumesTaken } from './pod-volumes.ts'

const metadata: readonly Refusal[] = [
  { why: 'the body is not valid JSON', body: '{"apiVersion":"v1","kind":"Pod",' },
  { why: 'the body is a list', body: '[]' },
  { why: 'the body is of another kind', body: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } } },
  {
    why: 'the body is of another version',
    body: { apiVersion: 'v2', kind: 'Pod', metadata: { name: 'web' } },
    ours: {
      because: 'upstream prints a source path, which depends on how it was built',
      instead: [/pkg\/[^"]*/, 'pkg/api/legacyscheme/scheme.go:30'],
    },
  },
  { why: 'the body has no kind', body: { apiVersion: 'v1', metadata: { name: 'web' } } },
  { why: 'the body has no apiVersion', body: { kind: 'Pod', metadata: { name: 'web' } } },
  { why: 'the spec is missing', set: { '/spec': undefined } },
  { why: 'the name is too long', set: { '/metadata/name': 'a'.repeat(254) } },
  { why: 'the name ends with a dash', set: { '/metadata/name': 'web-' } },
  {
    why: 'the name generated begins with a capital',
    set: { '/metadata/generateName': 'Generated-', '/metadata/name': undefined },
  },
  { why: 'a label name is too long', set: { '/metadata/labels': { ['a'.repeat(64)]: 'x' } } },
  { why: 'a label prefix is not a domain', set: { '/metadata/labels': { 'Under_score/x': 'x' } } },
  { why: 'a label value is too long', set: { '/metadata/labels': { a: 'x'.repeat(64) } } },
  { why: 'a label is a number', set: { '/metadata/labels': { a: 1 } } },
  { why: 'an annotation name has a space', set: { '/metadata/annotations': { 'a b': 'x' } } },
  { why: 'annotations are too large', set: { '/metadata/annotations': { a: 'x'.repeat(262_144) } } },
  { why: 'a finalizer has no domain', set: { '/metadata/finalizers': ['mine'] } },
  {
    why: 'an owner has no uid',
    set: { '/metadata/ownerReferences': [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: '' }] },
  },
  {
    why: 'an owner is an event',
    set: { '/metadata/ownerReferences': [{ apiVersion: 'v1', kind: 'Event', name: 'a', uid: 'u' }] },
  },
  {
    why: 'two owners control it',
    set: {
      '/metadata/ownerReferences': [
        { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'u1', controller: true },
        { apiVersion: 'v1', kind: 'Pod', name: 'b', uid: 'u2', controller: true },
      ],
    },
  },
  {
    why: 'it is sent to another namespace',
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'w', namespace: 'b' } },
  },
  { why: 'its namespace does not exist', set: { '/metadata/namespace': 'nowhere' } },
  { why: 'a time is none', set: { '/metadata/creationTimestamp': 'yesterday' } },
]

const updates: readonly Refusal[] = [
  {
    why: 'a container is renamed',
    on: 'update',
    set: { '/spec/containers/0/name': 'other' },
    ours: differing('spec.containers[0].name: "web" -> "other"'),
  },
  { why: 'a container is added', on: 'update', set: { '/spec/containers/-': { name: 'more', image: 'nginx' } } },
  { why: 'a container is removed', on: 'update', set: { '/spec/containers/1': undefined } },
  { why: 'the image is removed', on: 'update', set: { '/spec/containers/0/image': '' } },
  { why: 'the image gets a space', on: 'update', set: { '/spec/containers/0/image': ' nginx' } },
  { why: 'a toleration is removed', on: 'update', set: { '/spec/tolerations': [] } },
  { why: 'a toleration changes', on: 'update', set: { '/spec/tolerations/0/operator': 'Equal' } },
  {
    why: 'the deadline is removed',
    on: 'update',
    stored: { '/spec/activeDeadlineSeconds': 60 },
    set: { '/spec/activeDeadlineSeconds': undefined },
  },
  {
    why: 'the deadline grows',
    on: 'update',
    stored: { '/spec/activeDeadlineSeconds': 60 },
    set: { '/spec/activeDeadlineSeconds': 61 },
  },
  { why: 'the deadline becomes negative', on: 'update', set: { '/spec/activeDeadlineSeconds': -1 } },
  {
    why: 'the grace period changes',
    on: 'update',
    set: { '/spec/terminationGracePeriodSeconds': 5 },
    ours: differing('spec.terminationGracePeriodSeconds: 30 -> 5'),
  },
  {
    why: 'the service account changes',
    on: 'update',
    set: { '/spec/serviceAccountName': 'other' },
    ours: differing('spec.serviceAccountName: "default" -> "other"', 'spec.serviceAccount: "default" -> "other"'),
  },
  {
    why: 'the node is set by an update',
    on: 'update',
    set: { '/spec/nodeName': 'node-1' },
    ours: differing('spec.nodeName: <unset> -> "node-1"'),
  },
  { why: 'a gate is added', on: 'update', set: { '/spec/schedulingGates': [{ name: 'example.com/wait' }] } },
  {
    why: 'a gated pod loses part of its node selector',
    on: 'update',
    stored: { '/spec/schedulingGates': [{ name: 'example.com/wait' }], '/spec/nodeSelector': { a: 'b' } },
    set: { '/spec/nodeSelector': { c: 'd' } },
  },
  {
    why: 'the uid changes',
    on: 'update',
    set: { '/metadata/uid': 'other' },
    ours: {
      because: 'the keys of upstream lose their prefix in a dry run',
      instead: ['Key: /pods/', 'Key: /registry/pods/'],
    },
  },
  {
    why: 'resources change without resize',
    on: 'update',
    set: { '/spec/containers/0/resources': { requests: { cpu: '2' } } },
    ours: differing('spec.containers[0].resources.requests.cpu: "1" -> "2"'),
  },
  { why: 'a resize changes the class of service', on: 'update resize', set: { '/spec/containers/0/resources': {} } },
  {
    why: 'a resize removes a limit',
    on: 'update resize',
    stored: { '/spec/containers/0/resources': { requests: { memory: '1Gi' }, limits: { memory: '2Gi' } } },
    set: { '/spec/containers/0/resources/limits': undefined },
  },
  {
    why: 'a resize requests storage',
    on: 'update resize',
    set: { '/spec/containers/0/resources/requests/ephemeral-storage': '1Gi' },
  },
  {
    why: 'an ephemeral container takes the name of another',
    on: 'update ephemeralcontainers',
    set: { '/spec/ephemeralContainers': [{ name: 'web', image: 'busybox' }] },
  },
  {
    why: 'an ephemeral container has ports',
    on: 'update ephemeralcontainers',
    set: { '/spec/ephemeralContainers': [{ name: 'debug', image: 'busybox', ports: [{ containerPort: 80 }] }] },
  },
  {
    why: 'an ephemeral container with an unknown target',
    on: 'update ephemeralcontainers',
    set: {
      '/spec/ephemeralContainers': [{ name: 'debug', image: 'busybox', targetContainerName: 'nobody' }],
    },
  },
  {
    why: 'an ephemeral container has probes',
    on: 'update ephemeralcontainers',
    set: {
      '/spec/ephemeralContainers': [
        {
          name: 'debug',
          image: 'busybox',
          livenessProbe: { exec: { command: ['x'] } },
          resources: { limits: { cpu: 1 } },
          lifecycle: { preStop: { exec: { command: ['x'] } } },
        },
      ],
    },
  },
  { why: 'a status names another node', on: 'update status', set: { '/status/nominatedNodeName': 'Node_1' } },
  {
    why: 'a status has an address that is invalid',
    on: 'update status',
    set: { '/status/podIPs': [{ ip: '1.2.3' }], '/status/podIP': '1.2.3' },
  },
  {
    why: 'a status has two addresses of a family',
    on: 'update status',
    set: { '/status/podIPs': [{ ip: '1.2.3.4' }, { ip: '1.2.3.5' }], '/status/podIP': '1.2.3.4' },
    ours: printing('[{"ip":"1.2.3.4"},{"ip":"1.2.3.5"}]'),
  },
  {
    why: 'a status has a condition without a name',
    on: 'update status',
    set: { '/status/conditions': [{ type: '', status: 'True' }] },
  },
  {
    why: 'a status has a readiness gate condition with a bad name',
    on: 'update status',
    set: { '/status/conditions': [{ type: 'a b', status: 'True' }] },
  },
  {
    why: 'a binding is for another pod',
    on: 'create binding',
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'other' }, target: { kind: 'Node', name: 'node-1' } },
  },
  {
    why: 'a gated pod is bound',
    on: 'create binding',
    stored: { '/spec/schedulingGates': [{ name: 'example.com/wait' }] },
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'web' }, target: { kind: 'Node', name: 'node-1' } },
  },
  {
    why: 'an eviction is for another pod',
    on: 'create eviction',
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'other' } },
  },
]

export const pod: KindCases = {
  kind: Pods,
  given: [{ kind: Nodes, object: { metadata: { name: 'node-1' } } }],
  valid: {
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: {
      containers: [
        {
          name: 'web',
          image: 'nginx',
          ports: [{ name: 'http', containerPort: 80 }],
          resources: { requests: { cpu: '1' } },
        },
        { name: 'log', image: 'busybox', volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] },
      ],
      volumes: [{ name: 'scratch', emptyDir: {} }],
      tolerations: [{ key: 'a', operator: 'Exists' }],
    },
  },
  refused: [...metadata, ...podContainers, ...podVolumes, ...podPlacement, ...updates],
  taken: [
    ...containersTaken,
    ...volumesTaken,
    ...placementTaken,
    { why: 'a resize changes the image', on: 'update resize', set: { '/spec/containers/0/image': 'other' } },
  ],
}
