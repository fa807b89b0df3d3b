import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineFlags, parseFlags } from '#lib/flags/flags.ts'

import { APISERVER_FLAGS, type Settings } from './flags.ts'
import { type Planned, planServer, type ServerPlan } from './plan.ts'

const set = defineFlags(APISERVER_FLAGS)

function plan(args: readonly string[]): Planned {
  const { values, changed } = parseFlags(set, args)
  return planServer(values as unknown as Settings, changed)
}

const SA = ['--service-account-issuer=https://a', '--service-account-signing-key-file=sa.key']
const BASE = [
  '--etcd-servers=http://127.0.0.1:2379',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--authorization-mode=RBAC',
  ...SA,
]

/** Command lines of tools, from their sources. */
const KUBEADM = `
--advertise-address=192.168.0.1 --allow-privileged=true --authorization-mode=Node,RBAC
--client-ca-file=/etc/kubernetes/pki/ca.crt --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true
--etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt --etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt
--etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key --etcd-servers=https://127.0.0.1:2379
--kubelet-client-certificate=/etc/kubernetes/pki/apiserver-kubelet-client.crt
--kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key
--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname
--proxy-client-cert-file=/etc/kubernetes/pki/front-proxy-client.crt
--proxy-client-key-file=/etc/kubernetes/pki/front-proxy-client.key --requestheader-allowed-names=front-proxy-client
--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt --requestheader-extra-headers-prefix=X-Remote-Extra-
--requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User --secure-port=6443
--service-account-issuer=https://kubernetes.default.svc.cluster.local
--service-account-key-file=/etc/kubernetes/pki/sa.pub --service-account-signing-key-file=/etc/kubernetes/pki/sa.key
--service-cluster-ip-range=10.96.0.0/12 --tls-cert-file=/etc/kubernetes/pki/apiserver.crt
--tls-private-key-file=/etc/kubernetes/pki/apiserver.key`

const LOCAL_UP = `
--authorization-mode=Node,RBAC --cloud-provider= --v=3 --vmodule= --audit-policy-file= --cert-dir=/var/run/kubernetes
--egress-selector-config-file= --client-ca-file=client-ca.crt --kubelet-client-certificate=a.crt
--kubelet-certificate-authority=ca.crt --kubelet-client-key=a.key --kubelet-port=10250 --kubelet-read-only-port=10255
--service-account-key-file=sa.key --service-account-lookup=true --service-account-issuer=https://kubernetes.default.svc
--service-account-jwks-uri=https://kubernetes.default.svc/openid/v1/jwks --service-account-signing-key-file=sa.key
--enable-admission-plugins=NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,Priority,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ResourceQuota,NodeRestriction
--disable-admission-plugins= --admission-control-config-file= --bind-address=0.0.0.0 --secure-port=6443
--tls-cert-file=serving.crt --tls-private-key-file=serving.key --storage-backend=etcd3
--storage-media-type=application/vnd.kubernetes.protobuf --etcd-servers=http://127.0.0.1:2379
--service-cluster-ip-range=10.0.0.0/24 --feature-gates=AllAlpha=false --emulated-version= --external-hostname=localhost
--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
--requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-client-ca-file=request-header-ca.crt
--requestheader-allowed-names=system:auth-proxy --proxy-client-cert-file=b.crt --proxy-client-key-file=b.key
--cors-allowed-origins=//127.0.0.1(:[0-9]+)?$,//localhost(:[0-9]+)?$`

const RKE = `
--advertise-address=10.0.0.5 --client-ca-file=kube-ca.pem --etcd-cafile=kube-ca.pem --etcd-certfile=kube-node.pem
--etcd-keyfile=kube-node-key.pem --etcd-prefix=/registry --etcd-servers=https://10.0.0.5:2379
--kubelet-client-certificate=kube-apiserver.pem --kubelet-client-key=kube-apiserver-key.pem
--proxy-client-cert-file=p.pem --proxy-client-key-file=p-key.pem --requestheader-allowed-names=kube-apiserver-proxy-client
--requestheader-client-ca-file=rh-ca.pem --requestheader-username-headers=X-Remote-User
--requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra-
--service-account-key-file=sa.pem --service-cluster-ip-range=10.43.0.0/16 --service-node-port-range=30000-32767
--tls-cert-file=kube-apiserver.pem --tls-private-key-file=kube-apiserver-key.pem --authorization-mode=Node,RBAC
--anonymous-auth=false --bind-address=0.0.0.0 --secure-port=6443 --insecure-port=0 --allow-privileged=true
--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --profiling=false --service-account-lookup=true
--storage-backend=etcd3 --runtime-config=authorization.k8s.io/v1beta1=true
--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
--service-account-issuer=rke --service-account-signing-key-file=sa-key.pem --api-audiences=unknown
--enable-admission-plugins=NamespaceLifecycle,LimitRanger,ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ResourceQuota,NodeRestriction,Priority,TaintNodesByCondition,PersistentVolumeClaimResize,AlwaysPullImages,EventRateLimit
--admission-control-config-file=/etc/kubernetes/admission.yaml --audit-policy-file=/etc/kubernetes/audit-policy.yaml
--audit-log-path=/var/log/kube-audit/audit-log.json --audit-log-format=json --audit-log-maxage=30
--audit-log-maxbackup=10 --audit-log-maxsize=100 --authentication-token-webhook-cache-ttl=5s
--authentication-token-webhook-config-file=/etc/kubernetes/kube-api-authn-webhook.yaml`

/** With all settings of its variables. */
const LOCAL_UP_AUDITED = `
--authorization-config=authz.yaml --audit-policy-file=audit.yaml --audit-log-path=/tmp/kube-apiserver-audit.log
--admission-control-config-file=admission.yaml --authentication-token-webhook-config-file=authn.conf
--service-node-port-range=30000-32767 --runtime-config=api/all=true --allow-privileged=true --advertise-address=10.0.0.1
--service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file=sa.key
--etcd-servers=http://127.0.0.1:2379 --service-cluster-ip-range=10.0.0.0/24`

const ENVTEST = `
--etcd-servers=http://127.0.0.1:33333 --cert-dir=/tmp/k8s_test --secure-port=0 --bind-address=127.0.0.1
--service-cluster-ip-range=10.0.0.0/24 --allow-privileged=true --disable-admission-plugins=ServiceAccount
--authorization-mode=RBAC --service-account-signing-key-file=/tmp/sa-signer.key
--service-account-key-file=/tmp/sa-signer.crt --service-account-issuer=https://127.0.0.1:1234/
--client-ca-file=/tmp/client-cert-auth-ca.crt`

describe('planServer() for flags of kube-apiserver', () => {
  for (const [who, text] of Object.entries({ KUBEADM, LOCAL_UP, LOCAL_UP_AUDITED, RKE, ENVTEST })) {
    it(`accepts the flags of ${who.toLowerCase().replaceAll('_', '-')}`, () => {
      const args = text.trim().split(/\s+/)
      const parsed = parseFlags(set, args)
      const support = findUnsupported(APISERVER_FLAGS, parsed.values, parsed.changed)
      assert.deepEqual([...support.errors, ...plan(args).errors], [])
    })
  }

  for (const [args, check] of [
    [[], (made: ServerPlan) => assert.equal(made.datastore.location, 'http://127.0.0.1:2379')],
    [[], (made) => assert.deepEqual([made.serving.host, made.serving.port], ['0.0.0.0', 6443])],
    [[], (made) => assert.deepEqual(made.apiAudiences, ['https://a'])],
    [[], (made) => assert.equal(made.datastore.historyMs, 300_000)],
    [[], (made) => assert.equal(made.allowsAnonymous, true)],
    [['--etcd-compaction-interval=0'], (made) => assert.equal(made.datastore.historyMs, Infinity)],
    [['--api-audiences=x,y'], (made) => assert.deepEqual(made.apiAudiences, ['x', 'y'])],
    [['--anonymous-auth=false'], (made) => assert.equal(made.allowsAnonymous, false)],
    [['--tls-min-version=VersionTLS13'], (made) => assert.equal(made.serving.minVersion, 'TLSv1.3')],
    [['--service-node-port-range=100+5'], (made) => assert.deepEqual(made.nodePorts, { first: 100, last: 105 })],
    [[], (made) => assert.deepEqual(made.endpoints, { type: 'lease', count: 1 })],
    [['--endpoint-reconciler-type='], (made) => assert.equal(made.endpoints.type, 'lease')],
    [['--endpoint-reconciler-type=none'], (made) => assert.equal(made.endpoints.type, 'none')],
    [
      ['--endpoint-reconciler-type=master-count', '--apiserver-count=3'],
      (made) => assert.deepEqual(made.endpoints, { type: 'master-count', count: 3 }),
    ],
    [['--http2-max-streams-per-connection=7'], (made) => assert.equal(made.serving.maxStreams, 7)],
    [
      ['--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
      (made) => assert.equal(made.serving.ciphers?.at(-1), 'ECDHE-RSA-AES128-GCM-SHA256'),
    ],
    [
      ['--tls-sni-cert-key=a.crt,a.key:*.x,y', '--tls-sni-cert-key=b.crt,b.key'],
      (made) =>
        assert.deepEqual(made.serving.sni, [
          { certFile: 'a.crt', keyFile: 'a.key', names: ['*.x', 'y'] },
          { certFile: 'b.crt', keyFile: 'b.key', names: [] },
        ]),
    ],
    [
      ['--strict-transport-security-directives=max-age=1,preload'],
      (made) => assert.equal(made.hsts, 'max-age=1; preload'),
    ],
  ] as const satisfies readonly (readonly [readonly string[], (made: ServerPlan) => void])[]) {
    it(`accepts ${args.join(' ') || 'no flags'}`, () => {
      const { plan: made, errors } = plan([...BASE, ...args])
      assert.deepEqual(errors, [])
      assert.ok(made)
      check(made)
    })
  }

  it('disables anonymous access with authorization mode AlwaysAllow', () => {
    const { plan: made, notes } = plan(['--datastore=memory', ...SA])
    assert.deepEqual(made?.authorizationModes, ['AlwaysAllow'])
    assert.equal(made?.allowsAnonymous, false)
    assert.match(notes.join('\n'), /AnonymousAuth is not allowed with the AlwaysAllow authorizer/)
    assert.match(notes.join('\n'), /--service-cluster-ip-range/)
  })

  for (const [args, error] of [
    [['--datastore=memory'], '--etcd-servers and --datastore cannot both be given'],
    [['--etcd-prefix=/other'], '--etcd-prefix=/other is not supported: keys begin with "/registry"'],
    [['--etcd-certfile=a'], '--etcd-certfile and --etcd-keyfile should be specified together'],
    [['--secure-port=65536'], '--secure-port 65536 must be between 0 and 65535, inclusive. 0 picks a free port'],
    [['--tls-min-version=VersionTLS10'], 'unknown tls version "VersionTLS10"'],
    [['--tls-cipher-suites=X'], "Cipher suite X not supported or doesn't exist"],
    [['--tls-cert-file=a'], '--tls-cert-file and --tls-private-key-file should be specified together'],
    [['--max-requests-inflight=-1'], '--max-requests-inflight can not be negative value'],
    [
      ['--emulated-version=1.33'],
      '--emulated-version=1.33 is not supported: this is version 1.36 and emulates no other',
    ],
    [
      ['--cors-allowed-origins=example.com'],
      '--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host in the origin header',
    ],
    [
      ['--authorization-config=x'],
      '--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined',
    ],
    [
      ['--authentication-config=x', '--oidc-username-claim=sub'],
      'authentication-config file and oidc-* flags are mutually exclusive',
    ],
    [['--audit-log-path=-', '--audit-log-format=x'], 'invalid audit log format x, allowed formats are "legacy,json"'],
    [['--authorization-mode=Webhook'], "authorization-mode Webhook's authorization config file not passed"],
    [['--authorization-mode=Zork'], 'authorization-mode "Zork" is not a valid mode'],
    [['--authorization-mode=ABAC'], 'authorization-mode "ABAC" is not supported: use RBAC'],
    [['--authorization-mode=RBAC'], 'authorization-mode ["RBAC","RBAC"] has mode specified more than once'],
    [
      ['--authorization-webhook-config-file=x'],
      'cannot specify --authorization-webhook-config-file without mode Webhook',
    ],
    [['--service-account-issuer='], 'service-account-issuer should not be an empty string'],
    [['--service-account-issuer=https://a'], 'service-account-issuer "https://a" is already specified'],
    [
      ['--service-account-max-token-expiration=1m'],
      'the service-account-max-token-expiration must be between 1 hour and 2^32 seconds',
    ],
    [['--service-account-jwks-uri=http://a/'], 'service-account-jwks-uri requires https scheme, parsed as: http://a/'],
    [
      ['--oidc-issuer-url=https://a'],
      'oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set',
    ],
    [['--oidc-issuer-url=http://a', '--oidc-client-id=x'], 'oidc-issuer-url: "http://a" must be an https URL'],
    [['--enable-admission-plugins=Zork'], 'enable-admission-plugins plugin "Zork" is unknown'],
    [['--runtime-config=api/all=maybe'], 'invalid value api/all=maybe'],
    [
      ['--encryption-provider-config-automatic-reload'],
      '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
    ],
    [
      ['--proxy-client-cert-file=a'],
      '--proxy-client-cert-file and --proxy-client-key-file should be specified together',
    ],
    [['--endpoint-reconciler-type=magic'], 'Reconciler not implemented: magic'],
    [['--apiserver-count=0'], "--apiserver-count should be a positive number, but value '0' provided"],
    [
      ['--advertise-address=2001:db8::1', '--service-cluster-ip-range=10.0.0.0/24'],
      'service IP family "10.0.0.0/24" must match public address family "2001:db8::1"',
    ],
  ] as const) {
    it(`rejects ${args.join(' ')}`, () => {
      assert.ok(plan([...BASE, ...args]).errors.includes(error), plan([...BASE, ...args]).errors.join('\n'))
    })
  }

  for (const [range, error] of [
    [
      '10.0.0.0/24,10.1.0.0/24',
      '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family',
    ],
    ['10.0.0.0/8', 'specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12'],
    ['10.0.0.0', '--service-cluster-ip-range: "10.0.0.0" is not a CIDR block'],
    ['a,b,c', '--service-cluster-ip-range must not contain more than two entries'],
  ] as const) {
    it(`rejects the service range ${range}`, () => {
      assert.deepEqual(plan([...BASE, `--service-cluster-ip-range=${range}`]).errors, [error])
    })
  }

  it('reports all errors at once', () => {
    assert.deepEqual(plan([]).errors, [
      '--etcd-servers must be specified',
      '--service-account-signing-key-file and --service-account-issuer are required flags',
    ])
  })
})
