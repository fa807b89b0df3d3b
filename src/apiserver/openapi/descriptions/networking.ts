/** networking and discovery: how requests get in, who may talk to whom, which addresses there are. */
import type { DescriptionTable } from './table.ts'

const ports = 'At which ports. Empty: at all.'

export const networking: DescriptionTable = {
  Ingress: { '': 'Leads HTTP requests from outside to Services, by host and path.' },
  IngressSpec: {
    '': 'Which requests lead where.',
    ingressClassName: 'Which IngressClass is in charge.',
    defaultBackend: 'Where requests go that no rule fits.',
    tls: 'Certificates, by host.',
    rules: 'Where requests go, by host.',
  },
  IngressStatus: { '': 'Where an Ingress is reached.', loadBalancer: 'Its addresses.' },
  IngressRule: {
    '': 'Where requests for one host go.',
    host: 'The host, or *.example.com for all directly below. Empty: any.',
    http: 'Where, by path.',
  },
  HTTPIngressRuleValue: { '': 'Where requests go, by path.', paths: 'The paths; the longest that fits counts.' },
  HTTPIngressPath: {
    '': 'Where requests for one path go.',
    path: 'The path; begins with a slash.',
    pathType: 'Exact, Prefix (by whole segments) or ImplementationSpecific.',
    backend: 'Where they go.',
  },
  IngressBackend: {
    '': 'Where requests go. One of the two is set.',
    service: 'A Service.',
    resource: 'Another object, in the same namespace.',
  },
  IngressServiceBackend: { '': 'A Service and one of its ports.', name: 'The Service.', port: 'The port.' },
  ServiceBackendPort: { '': 'A port of a Service, by name or number.', name: 'Its name.', number: 'Its number.' },
  IngressTLS: {
    '': 'A certificate for hosts.',
    hosts: 'The hosts.',
    secretName: 'The Secret with certificate and key.',
  },
  IngressLoadBalancerStatus: { '': 'Where a load balancer is.', ingress: 'Its addresses.' },
  IngressLoadBalancerIngress: {
    '': 'An address of a load balancer.',
    ip: 'The address.',
    hostname: 'Or its name.',
    ports: 'How its ports fare.',
  },
  IngressPortStatus: {
    '': 'How a port fares.',
    port: 'The port.',
    protocol: 'Its protocol.',
    error: 'What is wrong with it.',
  },
  IngressClass: { '': 'A sort of Ingress, and who is in charge of it.' },
  IngressClassSpec: {
    '': 'Who is in charge.',
    controller: 'The controller, as domain/name. Cannot be changed.',
    parameters: 'An object with further settings.',
  },
  IngressClassParametersReference: {
    '': 'Points to the settings of a class.',
    apiGroup: 'The group of its kind.',
    kind: 'Its kind.',
    name: 'Its name.',
    scope: 'Cluster (the default) or Namespace.',
    namespace: 'Its namespace, for Namespace.',
  },
  NetworkPolicy: { '': 'Says which traffic pods may take part in. Pods that no policy selects may do everything.' },
  NetworkPolicySpec: {
    '': 'For which pods, and which traffic.',
    podSelector: 'The pods, in the same namespace. Empty: all.',
    ingress: 'What may come in. Empty: nothing.',
    egress: 'What may go out. Empty: nothing.',
    policyTypes: 'Which directions it is about: Ingress, Egress or both.',
  },
  NetworkPolicyIngressRule: { '': 'Traffic that may come in.', ports, from: 'From whom. Empty: from everybody.' },
  NetworkPolicyEgressRule: { '': 'Traffic that may go out.', ports, to: 'To whom. Empty: to everybody.' },
  NetworkPolicyPeer: {
    '': 'The other side.',
    podSelector: 'Pods, in the same namespace or in those of namespaceSelector.',
    namespaceSelector: 'All pods of these namespaces, or those that podSelector selects there.',
    ipBlock: 'Addresses. Not together with the others.',
  },
  NetworkPolicyPort: {
    '': 'Ports.',
    protocol: 'TCP, UDP or SCTP. Default: TCP.',
    port: 'The number or name. Absent: all.',
    endPort: 'All from port to this one.',
  },
  IPBlock: { '': 'Addresses.', cidr: 'The range.', except: 'Ranges within it that are not meant.' },
  IPAddress: { '': 'That an address is taken, and by what.' },
  IPAddressSpec: { '': 'What has an address.', parentRef: 'The object, mostly a Service.' },
  ParentReference: {
    '': 'Points to an object.',
    group: 'The group of its resource.',
    resource: 'Its resource.',
    namespace: 'Its namespace.',
    name: 'Its name.',
  },
  ServiceCIDR: { '': 'A range that addresses of Services come from.' },
  ServiceCIDRSpec: {
    '': 'The range.',
    cidrs: 'At most one of each IP family. Cannot be changed, but the other family may be added.',
  },
  ServiceCIDRStatus: { '': 'How a range fares.', conditions: 'Ready: addresses can be taken from it.' },
}

export const discovery: DescriptionTable = {
  EndpointSlice: {
    '': 'Some of the addresses behind a Service.',
    addressType: 'IPv4, IPv6 or FQDN. Cannot be changed.',
    endpoints: 'The addresses, at most 1000.',
    ports: 'The ports of each of them, at most 100. Absent: all ports.',
  },
  Endpoint: {
    '': 'Something behind a Service.',
    addresses: 'Its addresses; only the first is used.',
    conditions: 'How it fares.',
    hostname: 'Its host name.',
    targetRef: 'What it is, mostly a pod.',
    nodeName: 'The node it is on.',
    zone: 'The zone it is in.',
    hints: 'For whom it is meant.',
    deprecatedTopology: 'Gone; here for old objects.',
  },
  EndpointConditions: {
    '': 'How an endpoint fares.',
    ready: 'Whether it should get requests. Unknown counts as yes.',
    serving: 'The same, whether or not it is ending.',
    terminating: 'Whether it is ending.',
  },
  EndpointHints: {
    '': 'For whom an endpoint is meant.',
    forZones: 'For clients in these zones.',
    forNodes: 'For clients on these nodes.',
  },
  ForZone: { '': 'A zone.', name: 'Its name.' },
  ForNode: { '': 'A node.', name: 'Its name.' },
  EndpointPort: {
    '': 'A port of all endpoints of a slice.',
    name: 'The name of the port of the Service.',
    protocol: 'TCP, UDP or SCTP. Default: TCP.',
    port: 'The number.',
    appProtocol: 'What is spoken there.',
  },
}
