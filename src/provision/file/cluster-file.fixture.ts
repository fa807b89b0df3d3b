/** Sample files for RKE: from its documentation, from `rke config`, and from real projects. */

export const MINIMAL: string = `nodes:
- address: 10.0.0.1
  user: root
  role: [controlplane, etcd, worker]
`

const POLICY = `            apiVersion: audit.k8s.io/v1
            kind: Policy
            omitStages:
              - "RequestReceived"
            rules:
              - level: RequestResponse
                resources:
                - group: ""
                  resources: ["pods"]`

/** All sections of the documentation with their spellings. */
const FULL = `nodes:
    - address: 1.1.1.1
      user: ubuntu
      role:
        - controlplane
        - etcd
      port: 2222
      docker_socket: /var/run/docker.sock
    - address: 2.2.2.2
      user: ubuntu
      role:
        - worker
      ssh_key_path: /home/user/.ssh/id_rsa
      ssh_key: |-
        -----BEGIN RSA PRIVATE KEY-----

        -----END RSA PRIVATE KEY-----
    - address: 3.3.3.3
      user: ubuntu
      role:
        - worker
      ssh_key_path: /home/user/.ssh/id_rsa
      ssh_cert_path: /home/user/.ssh/id_rsa-cert.pub
      ssh_cert: |-
        ssh-rsa-cert-v01@openssh.com AAAAHHNza...
    - address: 4.4.4.4
      hostname_override: node3
      internal_address: 192.168.1.6
      user: ubuntu
      role: [worker]
      labels:
        app: ingress
      taints:
        - key: test-key
          value: test-value
          effect: NoSchedule
ignore_docker_version: false
enable_cri_dockerd: true
ssh_key_path: ~/.ssh/test
ssh_agent_auth: true
private_registries:
    - url: registry.com
      user: Username
      password: password
      is_default: true
bastion_host:
    address: 5.5.5.5
    user: ubuntu
    port: 22
    ssh_key_path: /home/user/.ssh/bastion_rsa
cluster_name: mycluster
kubernetes_version: v1.10.3-rancher2
system_images:
    kubernetes: rancher/hyperkube:v1.10.3-rancher2
    etcd: rancher/coreos-etcd:v3.1.12
    alpine: rancher/rke-tools:v0.1.9
    nginx_proxy: rancher/rke-tools:v0.1.9
    cert_downloader: rancher/rke-tools:v0.1.9
    kubernetes_services_sidecar: rancher/rke-tools:v0.1.9
    kubedns: rancher/k8s-dns-kube-dns-amd64:1.14.8
    dnsmasq: rancher/k8s-dns-dnsmasq-nanny-amd64:1.14.8
    kubedns_sidecar: rancher/k8s-dns-sidecar-amd64:1.14.8
    kubedns_autoscaler: rancher/cluster-proportional-autoscaler-amd64:1.0.0
    pod_infra_container: rancher/pause-amd64:3.1
services:
    etcd:
      uid: 52034
      gid: 52034
    kube-api:
      service_cluster_ip_range: 10.43.0.0/16
      service_node_port_range: 30000-32767
      pod_security_policy: false
      secrets_encryption_config:
        enabled: true
        custom_config:
          apiVersion: apiserver.config.k8s.io/v1
          kind: EncryptionConfiguration
          resources:
          - resources:
            - secrets
            providers:
            - aescbc:
                keys:
                - name: k-fw5hn
                  secret: RTczRjFDODMwQzAyMDVBREU4NDJBMUZFNDhCNzM5N0I=
            - identity: {}
      audit_log:
        enabled: true
        configuration:
          max_age: 6
          max_backup: 6
          max_size: 110
          path: /var/log/kube-audit/audit-log.json
          format: json
          policy:
${POLICY}
      event_rate_limit:
        enabled: true
        configuration:
          apiVersion: eventratelimit.admission.k8s.io/v1alpha1
          kind: Configuration
          limits:
          - type: Server
            qps: 6000
            burst: 30000
      always_pull_images: false
      extra_args:
        audit-log-path: "-"
        delete-collection-workers: 3
        v: 4
    kube-controller:
      cluster_cidr: 10.42.0.0/16
      service_cluster_ip_range: 10.43.0.0/16
      extra_args:
        v: 4
        feature-gates: RotateKubeletServerCertificate=true
        cluster-signing-cert-file: "/etc/kubernetes/ssl/kube-ca.pem"
        cluster-signing-key-file: "/etc/kubernetes/ssl/kube-ca-key.pem"
    kubelet:
      cluster_domain: cluster.local
      cluster_dns_server: 10.43.0.10
      fail_swap_on: false
      pod-infra-container-image: "k8s.gcr.io/pause:3.2"
      generate_serving_certificate: true
      extra_args:
        max-pods: 250
        feature-gates: RotateKubeletServerCertificate=true
      extra_binds:
        - "/usr/libexec/kubernetes/kubelet-plugins:/usr/libexec/kubernetes/kubelet-plugins"
    scheduler:
      extra_args:
        v: 4
    kubeproxy:
      extra_args:
        v: 4
authentication:
    strategy: x509
    sans:
      - "10.18.160.10"
      - "my-loadbalancer-1234567890.us-west-2.elb.amazonaws.com"
authorization:
    mode: rbac
cloud_provider:
    name: aws
addon_job_timeout: 30
network:
    plugin: canal
    mtu: 1400
    options:
      canal_iface: eth1
      canal_flannel_backend_type: vxlan
      canal_autoscaler_priority_class_name: system-cluster-critical
      canal_priority_class_name: system-cluster-critical
    tolerations:
    - key: "node.kubernetes.io/unreachable"
      operator: "Exists"
      effect: "NoExecute"
      tolerationseconds: 300
    - key: "node.kubernetes.io/not-ready"
      operator: "Exists"
      effect: "NoExecute"
      tolerationseconds: 300
    update_strategy:
      strategy: RollingUpdate
      rollingUpdate:
        maxUnavailable: 6
dns:
    provider: coredns
    update_strategy:
      strategy: RollingUpdate
      rollingUpdate:
        maxUnavailable: 20%
        maxSurge: 15%
    linear_autoscaler_params:
      cores_per_replica: 0.34
      nodes_per_replica: 4
      prevent_single_point_failure: true
      min: 2
      max: 3
monitoring:
    provider: metrics-server
    update_strategy:
      strategy: RollingUpdate
      rollingUpdate:
        maxUnavailable: 8
ingress:
    provider: nginx
    node_selector:
      app: ingress
    update_strategy:
      strategy: RollingUpdate
      rollingUpdate:
        maxUnavailable: 5
addons: |-
    ---
    apiVersion: v1
    kind: Pod
    metadata:
      name: my-nginx
      namespace: default
    spec:
      containers:
      - name: my-nginx
        image: nginx
        ports:
        - containerPort: 80
addons_include:
    - https://example.com/manifests/operator.yaml
    - /opt/manifests/example.yaml
`

const BASTION = `nodes:
  - address: 192.168.1.10
    user: rancher
    role: [controlplane, etcd]
  - address: 192.168.1.11
    user: rancher
    role: [controlplane, etcd]
  - address: 192.168.1.12
    user: rancher
    role: [controlplane, etcd]
  - address: 192.168.1.20
    user: rancher
    role: [worker]
  - address: 192.168.1.21
    user: rancher
    role: [worker]
bastion_host:
  address: bastion.example.com
  user: ubuntu
  port: "2222"
  ssh_key_path: ~/.ssh/bastion
  ignore_proxy_env_vars: true
upgrade_strategy:
  max_unavailable_worker: 10%
  max_unavailable_controlplane: 1
  drain: true
  node_drain_input:
    force: false
    ignore_daemonsets: true
    delete_local_data: false
    grace_period: -1
    timeout: 60
`

const S3 = `${MINIMAL}services:
  etcd:
    backup_config:
      enabled: true
      interval_hours: 6
      retention: 12
      safe_timestamp: true
      timeout: 600
      s3backupconfig:
        access_key: S3_ACCESS_KEY
        secret_key: S3_SECRET_KEY
        bucket_name: s3-bucket-name
        region: ""
        folder: folder-name
        endpoint: s3.amazonaws.com
        custom_ca: |-
          -----BEGIN CERTIFICATE-----
          MIIB
          -----END CERTIFICATE-----
`

const OLD_SNAPSHOTS = `${MINIMAL}services:
  etcd:
    snapshot: true
    creation: 6h
    retention: 24h
`

const EXTERNAL_ETCD = `nodes:
  - {address: 10.1.0.1, user: root, role: [controlplane, worker]}
services:
  etcd:
    path: /etcdcluster
    external_urls:
      - https://etcd-example.com:2379
    ca_cert: |-
      -----BEGIN CERTIFICATE-----
      xxxxxxxxxx
      -----END CERTIFICATE-----
    cert: |-
      -----BEGIN CERTIFICATE-----
      xxxxxxxxxx
      -----END CERTIFICATE-----
    key: |-
      -----BEGIN PRIVATE KEY-----
      xxxxxxxxxx
      -----END PRIVATE KEY-----
`

const FLANNEL = `${MINIMAL}network:
  plugin: flannel
  options:
    flannel_iface: eth1
    flannel_backend_type: host-gw
    flannel_autoscaler_priority_class_name: system-cluster-critical
    flannel_priority_class_name: system-cluster-critical
  node_selector:
    zone: a
`

const CALICO_DUAL_STACK = `${MINIMAL}network:
  plugin: calico
  options:
    calico_cloud_provider: aws
services:
  kube-api:
    service_cluster_ip_range: 10.43.0.0/16,fd98::/108
  kube-controller:
    service_cluster_ip_range: 10.43.0.0/16,fd98::/108
    cluster_cidr: 10.42.0.0/16,fd42::/48
`

/** Windows needs another VXLAN port and VNI. */
const WINDOWS = `${MINIMAL}network:
  plugin: flannel
  options:
    flannel_backend_type: vxlan
    flannel_backend_port: 4789
    flannel_backend_vni: 4096
win_prefix_path: c:/
services:
  kubelet:
    win_extra_args:
      cgroups-per-qos: false
    win_extra_binds:
    - "c:/data:c:/data"
`

/** A cluster on vSphere: version, images and the webhook of an authorized endpoint. */
const VSPHERE = `nodes:
- address: 192.168.10.21
  hostname_override: master1
  user: ubuntu
  role: [etcd, controlplane, worker]
kubernetes_version: v1.17.6-rancher2-1
authentication:
  strategy: x509|webhook
  webhook:
    cache_timeout: 5s
cloud_provider:
  name: vsphere
  vsphereCloudProvider:
    global: {insecure-flag: true}
    workspace: {datacenter: dc1, server: vc.example.com}
system_images:
  kubernetes: rancher/hyperkube:v1.17.6-rancher2
  etcd: rancher/coreos-etcd:v3.4.3-rancher1
`

/** The files by topic. */
export const FILES: Readonly<
  Record<
    | 'MINIMAL'
    | 'FULL'
    | 'BASTION'
    | 'S3'
    | 'OLD_SNAPSHOTS'
    | 'EXTERNAL_ETCD'
    | 'FLANNEL'
    | 'CALICO_DUAL_STACK'
    | 'WINDOWS'
    | 'VSPHERE',
    string
  >
> = {
  MINIMAL,
  FULL,
  BASTION,
  S3,
  OLD_SNAPSHOTS,
  EXTERNAL_ETCD,
  FLANNEL,
  CALICO_DUAL_STACK,
  WINDOWS,
  VSPHERE,
}
