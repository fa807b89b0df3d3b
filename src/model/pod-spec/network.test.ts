import { describePodRules } from './pod-spec.suite.ts'

describePodRules('network of a pod spec', [
  {
    title: 'network has a valid DNS configuration',
    patch: { dnsPolicy: 'None' },
    errors: ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
  },
  {
    title: 'network has valid host names and name servers',
    patch: {
      dnsPolicy: 'Guess',
      dnsConfig: {
        nameservers: ['1.1.1.1', '01.1.1.1', 'x', '::1'],
        searches: ['.', '_a.b', 'Bad!', 'x.'],
        options: [{ value: 'x' }],
      },
      hostAliases: [{ ip: '::ffff:1.2.3.4', hostnames: ['Bad_'] }],
      hostname: 'a.b',
      subdomain: '-',
      hostnameOverride: 'x_y',
      setHostnameAsFQDN: true,
      restartPolicy: 'Perhaps',
    },
    errors: [
      'spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"',
      'spec.dnsPolicy: Unsupported value: "Guess": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
      'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","01.1.1.1","x","::1"]: must not have more than 3 nameservers',
      'spec.dnsConfig.nameservers[1]: Invalid value: "01.1.1.1": must not have leading 0s',
      'spec.dnsConfig.nameservers[2]: Invalid value: "x": must be a valid IP address, …',
      `spec.dnsConfig.searches[2]: Invalid value: "Bad!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.dnsConfig.options[0]: Required value: must not be empty',
      'spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true',
      `spec.hostnameOverride: Invalid value: "x_y": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.hostname: Invalid value: "a.b": must not contain dots',
      `spec.subdomain: Invalid value: "-": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character …`,
      'spec.hostAliases[0].ip: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address',
      `spec.hostAliases[0].hostnames[0]: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
    ],
  },
])
