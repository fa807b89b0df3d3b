import { Nodes } from '#apis/core/v1.ts'

import { printing, type KindCases } from '../case.ts'

export const node: KindCases = {
  kind: Nodes,
  valid: {
    metadata: { name: 'machine-1', labels: { zone: 'a' } },
    spec: {
      podCIDRs: ['10.1.0.0/24'],
      podCIDR: '10.1.0.0/24',
      providerID: 'a://1',
      taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
    },
    status: { capacity: { cpu: '4', memory: '8Gi' }, addresses: [{ type: 'InternalIP', address: '10.0.0.7' }] },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Machine' } },
    { why: 'a taint has no key', set: { '/spec/taints': [{ key: '', effect: 'NoSchedule' }] } },
    { why: 'a taint has no effect', set: { '/spec/taints': [{ key: 'a' }] } },
    { why: 'a taint effect is unknown', set: { '/spec/taints/0/effect': 'Explode' } },
    { why: 'a taint value has a space', set: { '/spec/taints/0/value': 'b c' } },
    {
      why: 'a repeated taint',
      set: { '/spec/taints/-': { key: 'a', value: 'c', effect: 'NoSchedule' } },
      ours: printing('{"key":"a","value":"c","effect":"NoSchedule"}'),
    },
    { why: 'a pod range is none', set: { '/spec/podCIDRs': ['10.1.0.0'], '/spec/podCIDR': '10.1.0.0' } },
    { why: 'two pod ranges are of one family', set: { '/spec/podCIDRs/-': '10.2.0.0/24' } },
    { why: 'a capacity is negative', set: { '/status/capacity/cpu': '-1' } },
    { why: 'huge pages are of two sizes and one is negative', set: { '/status/capacity/hugepages-2Mi': '-2Mi' } },
    {
      why: 'the pods to avoid are not JSON',
      set: { '/metadata/annotations': { 'scheduler.alpha.kubernetes.io/preferAvoidPods': 'x' } },
    },
    { why: 'the provider changes', on: 'update', set: { '/spec/providerID': 'a://2' } },
    {
      why: 'the pod range changes',
      on: 'update',
      set: { '/spec/podCIDR': '10.9.0.0/24', '/spec/podCIDRs': ['10.9.0.0/24'] },
    },
    { why: 'the pod range is removed', on: 'update', set: { '/spec/podCIDR': undefined, '/spec/podCIDRs': undefined } },
    { why: 'a taint becomes invalid', on: 'update', set: { '/spec/taints/0/effect': 'Explode' } },
    {
      why: 'a taint is doubled',
      on: 'update',
      set: { '/spec/taints/-': { key: 'a', value: 'c', effect: 'NoSchedule' } },
      ours: printing('{"key":"a","value":"c","effect":"NoSchedule"}'),
    },
    {
      why: 'the status has a repeated address',
      on: 'update status',
      set: { '/status/addresses/-': { type: 'InternalIP', address: '10.0.0.7' } },
      ours: printing('{"type":"InternalIP","address":"10.0.0.7"}'),
    },
    { why: 'the status has a negative capacity', on: 'update status', set: { '/status/capacity/cpu': '-1' } },
    { why: 'the status has a repeated feature', on: 'update status', set: { '/status/declaredFeatures': ['B', 'A'] } },
  ],
  taken: [
    { why: 'its configuration is of two kinds', set: { '/spec/configSource': {} } },
    { why: 'a capacity has no name', set: { '/status/capacity/a b': '1' } },
    { why: 'an address is there twice', set: { '/status/addresses/-': { type: 'InternalIP', address: '10.0.0.7' } } },
    { why: 'two names of its pod range differ', set: { '/spec/podCIDR': '10.3.0.0/24' } },
  ],
}
