/** `ingress-controller`: serves Ingresses on two ports, with ingress-nginx's flags, classes and annotations. */
import type { ObjectKey } from '#ingress/routing-state.ts'
import { startIngressController } from '#ingress/start.ts'
import { keepStatus } from '#ingress/status.ts'
import { aborted } from '#lib/abort.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { servePages } from '#lib/http/pages.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { openNodeClient } from './node-client.ts'

const NAME = 'ingress-controller'

const FLAGS = {
  ingress: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: the service account of the pod)'),
    'apiserver-host': flag(string, '', '`address` of the API server; overrides the kubeconfig'),
    'bind-address': flag(string, '0.0.0.0', '`address` to listen on'),
    'http-port': flag(int, 80, 'HTTP port'),
    'https-port': flag(int, 443, 'HTTPS port'),
    'healthz-port': flag(int, 10_254, 'port of /healthz and /metrics'),
    'controller-class': flag(string, 'k8s.io/ingress-nginx', 'controller name in the IngressClasses to serve'),
    'ingress-class': flag(string, 'nginx', 'value of the annotation kubernetes.io/ingress.class to serve'),
    'watch-ingress-without-class': flag(bool, false, 'serve Ingresses without a class'),
    configmap: flag(string, '', '`namespace/name` of the ConfigMap with settings for all Ingresses'),
    'default-backend-service': flag(string, '', '`namespace/name` of the default backend Service'),
    'default-ssl-certificate': flag(string, '', '`namespace/name` of the default certificate Secret'),
    'update-status': flag(bool, true, 'write the addresses of this controller to the status of Ingresses'),
    'publish-status-address': flag(strings, [], 'addresses for the status, instead of those of nodes'),
    'election-id': flag(
      string,
      'ingress-controller-leader',
      'Lease for the election of the instance that updates the status',
    ),
    'pod-selector': flag(string, 'app=ingress-nginx', 'label selector of the pods of this controller'),
  },
  logs: LOG_FLAGS,
} as const satisfies FlagGroups

export const ingressController: Program = defineProgram({
  name: NAME,
  long:
    'ingress-controller forwards HTTP and HTTPS requests to the pods behind Ingresses. It supports the classes and many annotations and flags of ' +
    'ingress-nginx. POD_NAME and POD_NAMESPACE set its pod.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runController,
})

async function runController(invocation: Invocation<typeof FLAGS>, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log, env } = invocation
  await using closing = new AsyncDisposableStack()
  const where = { kubeconfig: flags.kubeconfig, master: flags['apiserver-host'] }
  const client = await openNodeClient(invocation, closing, { name: NAME, where })
  let isReady = (): boolean => false
  let metrics = (): string => ''
  const pages = {
    '/healthz': () => (isReady() ? { body: 'ok' } : { status: 500, body: 'not synced' }),
    '/metrics': () => ({ type: METRICS_CONTENT_TYPE, body: metrics() }),
  }
  const health = `${flags['bind-address']}:${flags['healthz-port']}`
  await servePages(health, { clock, log, closing, isFatal: true }, pages)
  const controller = await startIngressController(
    {
      client,
      clock,
      random,
      log,
      address: flags['bind-address'],
      httpPort: flags['http-port'],
      httpsPort: flags['https-port'],
      classes: {
        controller: flags['controller-class'],
        className: flags['ingress-class'],
        takesUnclassed: flags['watch-ingress-without-class'],
      },
      settings: placeOf('configmap', flags.configmap),
      defaultBackend: placeOf('default-backend-service', flags['default-backend-service']),
      defaultCertificate: placeOf('default-ssl-certificate', flags['default-ssl-certificate']),
    },
    closing,
  )
  isReady = () => controller.watched.isSynced
  metrics = () => controller.metrics.render()
  log.info('Serving Ingresses', { http: controller.httpPort, https: controller.httpsPort })
  const { POD_NAME: name = '', POD_NAMESPACE: namespace = '' } = env
  if (!flags['update-status'] || name === '') await aborted(signal)
  else {
    const status = { client, random, log, watched: controller.watched, pod: { namespace, name } }
    const chosen = { electionId: flags['election-id'], selector: flags['pod-selector'] }
    await keepStatus({ ...status, ...chosen, published: flags['publish-status-address'] }, signal)
  }
  return 0
}

/** Throws ProgramError. */
function placeOf(name: string, text: string): ObjectKey | undefined {
  if (text === '') return undefined
  const [namespace = '', own = '', ...rest] = text.split('/')
  if (namespace === '' || own === '' || rest.length > 0) throw new ProgramError(`--${name} must be namespace/name`)
  return { namespace, name: own }
}
