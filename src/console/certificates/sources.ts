/** The places in a cluster that have certificates: which objects, and where in them. */
import type { ValidatingWebhookConfiguration } from '#apis/admissionregistration/v1.ts'
import type { CustomResourceDefinition } from '#apis/apiextensions/v1.ts'
import type { APIService } from '#apis/apiregistration/v1.ts'
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import type { ConfigMap, Secret } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { type KindAddress, listPath } from '../api/kinds.ts'
import type { Ref } from '../objects/ref.ts'
import { fromBase64 } from './certificate.ts'
import { DerError } from './der.ts'

/** A text with certificates in PEM. */
export interface FoundPem {
  /** The field of the object. */
  readonly field: string
  readonly pem: string
}

export interface Source {
  /** In the plural, for messages. */
  readonly name: string
  readonly apiVersion: string
  readonly kind: string
  readonly path: string
  /** Objects in a page. */
  readonly limit: number
  /** The certificates of an object. Everything else in it is dropped. */
  readonly read: (object: KubeObject) => readonly FoundPem[]
}

const core = (plural: string): KindAddress => ({ group: '', version: 'v1', plural })
const admission = (plural: string): KindAddress => ({ group: 'admissionregistration.k8s.io', version: 'v1', plural })

function selected(path: string, selector: string): string {
  return `${path}?fieldSelector=${encodeURIComponent(selector)}`
}

export const SOURCES: readonly Source[] = [
  {
    name: 'TLS Secrets',
    apiVersion: 'v1',
    kind: 'Secret',
    path: selected(listPath(core('secrets')), 'type=kubernetes.io/tls'),
    limit: 200,
    // Only the certificate: the private key goes nowhere.
    read: (object) => encoded('tls.crt', (object as Secret).data?.['tls.crt']),
  },
  {
    name: 'authorities of the cluster',
    apiVersion: 'v1',
    kind: 'ConfigMap',
    path: selected(listPath(core('configmaps')), 'metadata.name=kube-root-ca.crt'),
    limit: 500,
    read: (object) => plain(object, ['ca.crt']),
  },
  {
    name: 'authorities of clients',
    apiVersion: 'v1',
    kind: 'ConfigMap',
    path: selected(listPath(core('configmaps'), 'kube-system'), 'metadata.name=extension-apiserver-authentication'),
    limit: 10,
    read: (object) => plain(object, ['client-ca-file', 'requestheader-client-ca-file']),
  },
  {
    name: 'validating webhooks',
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    path: listPath(admission('validatingwebhookconfigurations')),
    limit: 100,
    read: readWebhooks,
  },
  {
    name: 'mutating webhooks',
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    path: listPath(admission('mutatingwebhookconfigurations')),
    limit: 100,
    read: readWebhooks,
  },
  {
    name: 'APIServices',
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    path: listPath({ group: 'apiregistration.k8s.io', version: 'v1', plural: 'apiservices' }),
    limit: 200,
    read: (object) => encoded('caBundle', (object as APIService).spec?.caBundle),
  },
  {
    name: 'conversion webhooks',
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    path: listPath({ group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' }),
    // Definitions are large.
    limit: 25,
    read: (object) =>
      encoded('caBundle', (object as CustomResourceDefinition).spec.conversion?.webhook?.clientConfig?.caBundle),
  },
  {
    name: 'certificate signing requests',
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    path: listPath({ group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' }),
    limit: 200,
    read: (object) => encoded('status.certificate', (object as CertificateSigningRequest).status?.certificate),
  },
]

export function refOf({ apiVersion, kind }: Source, { metadata }: KubeObject): Ref {
  return { apiVersion, kind, namespace: metadata.namespace, name: metadata.name ?? '' }
}

function readWebhooks(object: KubeObject): readonly FoundPem[] {
  const { webhooks } = object as ValidatingWebhookConfiguration
  return (webhooks ?? []).flatMap(({ name, clientConfig }) => encoded(name, clientConfig.caBundle))
}

function plain({ data }: ConfigMap, keys: readonly string[]): readonly FoundPem[] {
  return keys.flatMap((field) => {
    const pem = data?.[field]
    return pem === undefined ? [] : [{ field, pem }]
  })
}

/** A field of bytes: base64 of PEM. */
function encoded(field: string, base64: string | undefined): readonly FoundPem[] {
  if (base64 === undefined || base64 === '') return []
  try {
    return [{ field, pem: new TextDecoder().decode(fromBase64(base64)) }]
  } catch (error) {
    if (error instanceof DerError) return []
    throw error
  }
}
