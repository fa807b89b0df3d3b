/** Families about what is let in: admission as a whole and plugin by plugin, pod security, certificates. */
export const ADMISSION_FAMILIES = {
  apiserver_admission_controller_admission_duration_seconds: [
    'histogram',
    'STABLE',
    'name type operation rejected',
    'How long each admission plugin took, in seconds.',
    { buckets: 'admission' },
  ],
  apiserver_admission_step_admission_duration_seconds: [
    'histogram',
    'STABLE',
    'type operation rejected',
    'How long each step of admission took, in seconds.',
    { buckets: 'admission' },
  ],
  apiserver_certificates_registry_csr_honored_duration_total: [
    'counter',
    'ALPHA',
    'signerName',
    'Certificates that were issued for as long as was asked.',
  ],
  apiserver_certificates_registry_csr_requested_duration_total: [
    'counter',
    'ALPHA',
    'signerName',
    'Certificates that were issued to requests that named how long they shall be good.',
  ],
  pod_security_errors_total: [
    'counter',
    'ALPHA',
    'fatal request_operation resource subresource',
    'Evaluations of pod security that could not be made, by whether that refused the request.',
  ],
  pod_security_evaluations_total: [
    'counter',
    'ALPHA',
    'decision policy_level policy_version mode request_operation resource subresource',
    'Evaluations of pod security, by policy, mode and decision.',
  ],
  pod_security_exemptions_total: [
    'counter',
    'ALPHA',
    'request_operation resource subresource',
    'Requests that pod security did not look at because they are exempt.',
  ],
} as const
