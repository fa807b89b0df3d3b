import { Services } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const BALANCED = { '/spec/type': 'LoadBalancer' }
const HEADLESS = { '/spec/clusterIP': 'None' }
const NAMED = { '/spec/type': 'ExternalName', '/spec/externalName': 'a.example.com', '/spec/ports': undefined }

export const service: KindCases = {
  kind: Services,
  valid: {
    metadata: { name: 'web' },
    spec: {
      selector: { app: 'web' },
      ports: [
        { name: 'http', port: 80 },
        { name: 'https', port: 443 },
      ],
    },
  },
  refused: [
    { why: 'the name has a dot', set: { '/metadata/name': 'web.1' } },
    { why: 'the name is too long', set: { '/metadata/name': 'a'.repeat(64) } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'ports are missing', set: { '/spec/ports': [] } },
    { why: 'a port is too high', set: { '/spec/ports/0/port': 65_536 } },
    { why: 'a port is missing', set: { '/spec/ports/0/port': undefined } },
    { why: 'a port of several has no name', set: { '/spec/ports/0/name': '' } },
    { why: 'a port name has capitals', set: { '/spec/ports/0/name': 'HTTP' } },
    { why: 'two ports have one name', set: { '/spec/ports/1/name': 'http' } },
    { why: 'two ports are one', set: { '/spec/ports/1/port': 80 } },
    { why: 'a protocol is unknown', set: { '/spec/ports/0/protocol': 'HTTP' } },
    { why: 'a target port is too high', set: { '/spec/ports/0/targetPort': 70_000 } },
    { why: 'a target port has no letter', set: { '/spec/ports/0/targetPort': '8080' } },
    { why: 'a target port name is too long', set: { '/spec/ports/0/targetPort': 'a-name-too-long-1' } },
    { why: 'an application protocol has spaces', set: { '/spec/ports/0/appProtocol': 'a b' } },
    { why: 'the type is unknown', set: { '/spec/type': 'Magic' } },
    { why: 'the selector is not a label', set: { '/spec/selector': { app: 'a b' } } },
    { why: 'the affinity is unknown', set: { '/spec/sessionAffinity': 'Cookie' } },
    {
      why: 'the affinity lasts too long',
      set: {
        '/spec/sessionAffinity': 'ClientIP',
        '/spec/sessionAffinityConfig': { clientIP: { timeoutSeconds: 86_401 } },
      },
    },
    { why: 'the cluster address is none', set: { '/spec/clusterIP': '10.0.0' } },
    { why: 'the cluster address is outside the range', set: { '/spec/clusterIP': '192.168.1.1' } },
    {
      why: 'the two cluster addresses differ',
      set: { '/spec/clusterIP': '10.0.0.9', '/spec/clusterIPs': ['10.0.0.8'] },
    },
    {
      why: 'a headless service has two addresses',
      set: { '/spec/clusterIP': 'None', '/spec/clusterIPs': ['None', '10.0.0.9'] },
    },
    { why: 'the family is unknown', set: { '/spec/ipFamilies': ['IPv5'] } },
    { why: 'the family is repeated', set: { '/spec/ipFamilies': ['IPv4', 'IPv4'] } },
    { why: 'the family is not to be had', set: { '/spec/ipFamilies': ['IPv6'] } },
    { why: 'the family policy is unknown', set: { '/spec/ipFamilyPolicy': 'Maybe' } },
    { why: 'two families are required', set: { '/spec/ipFamilyPolicy': 'RequireDualStack' } },
    { why: 'an external address is none', set: { '/spec/externalIPs': ['1.2.3'] } },
    { why: 'an external address is loopback', set: { '/spec/externalIPs': ['127.0.0.1'] } },
    { why: 'a node port is of a plain service', set: { '/spec/ports/0/nodePort': 30_080 } },
    {
      why: 'a repeated node port',
      set: { '/spec/type': 'NodePort', '/spec/ports/0/nodePort': 30_080, '/spec/ports/1/nodePort': 30_080 },
    },
    { why: 'the traffic policy is unknown', set: { '/spec/type': 'NodePort', '/spec/externalTrafficPolicy': 'Odd' } },
    { why: 'the traffic policy is of a plain service', set: { '/spec/externalTrafficPolicy': 'Local' } },
    { why: 'the inner traffic policy is unknown', set: { '/spec/internalTrafficPolicy': 'Odd' } },
    { why: 'the distribution is unknown', set: { '/spec/trafficDistribution': 'Odd' } },
    { why: 'a health port needs a local policy', set: { ...BALANCED, '/spec/healthCheckNodePort': 30_081 } },
    { why: 'source ranges are of a plain service', set: { '/spec/loadBalancerSourceRanges': ['10.0.0.0/8'] } },
    { why: 'a source range is none', set: { ...BALANCED, '/spec/loadBalancerSourceRanges': ['10.0.0.0'] } },
    { why: 'a balancer class is of a plain service', set: { '/spec/loadBalancerClass': 'example.com/lb' } },
    { why: 'an invalid load balancer class', set: { ...BALANCED, '/spec/loadBalancerClass': 'a b' } },
    { why: 'node ports are switched on a plain service', set: { '/spec/allocateLoadBalancerNodePorts': true } },
    { why: 'a balancer is headless', set: { ...BALANCED, ...HEADLESS } },
    { why: 'an external name is missing', set: { ...NAMED, '/spec/externalName': '' } },
    { why: 'an external name is none', set: { ...NAMED, '/spec/externalName': 'a_b' } },
    { why: 'an external name has an address', set: { ...NAMED, '/spec/clusterIP': '10.0.0.9' } },
    {
      why: 'the cluster address changes',
      on: 'update',
      set: { '/spec/clusterIP': '10.0.0.99', '/spec/clusterIPs': ['10.0.0.99'] },
      stored: { '/spec/clusterIP': '10.0.0.98' },
    },
    {
      why: 'the cluster address is removed',
      on: 'update',
      stored: { '/spec/clusterIP': '10.0.0.98' },
      set: { '/spec/clusterIP': 'None', '/spec/clusterIPs': ['None'] },
    },
    {
      why: 'the family changes',
      on: 'update',
      stored: { '/spec/clusterIP': '10.0.0.98' },
      set: { '/spec/ipFamilies': ['IPv6'] },
    },
    {
      why: 'the balancer class changes',
      on: 'update',
      stored: { ...BALANCED, '/spec/loadBalancerClass': 'example.com/a' },
      set: { '/spec/loadBalancerClass': 'example.com/b' },
    },
    { why: 'the ports are removed', on: 'update', set: { '/spec/ports': [] } },
    {
      why: 'the status has an address that is invalid',
      on: 'update status',
      stored: BALANCED,
      set: { '/status/loadBalancer': { ingress: [{ ip: '1.2.3' }] } },
    },
    {
      why: 'the status has a host that is an address',
      on: 'update status',
      stored: BALANCED,
      set: { '/status/loadBalancer': { ingress: [{ hostname: '1.2.3.4' }] } },
    },
    {
      why: 'the status of a plain service has addresses',
      on: 'update status',
      set: { '/status/loadBalancer': { ingress: [{ ip: '1.2.3.4' }] } },
    },
    {
      why: 'the status has an unknown mode',
      on: 'update status',
      stored: BALANCED,
      set: { '/status/loadBalancer': { ingress: [{ ip: '1.2.3.4', ipMode: 'Odd' }] } },
    },
  ],
  taken: [
    { why: 'a node port is outside the range', set: { '/spec/type': 'NodePort', '/spec/ports/0/nodePort': 80 } },
    { why: 'the cluster address is taken', set: { '/spec/clusterIP': '10.0.0.1' } },
    {
      why: 'there is a time of no affinity',
      set: { '/spec/sessionAffinityConfig': { clientIP: { timeoutSeconds: 5 } } },
    },
  ],
}
